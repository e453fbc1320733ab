import { badRequest } from "../base/errors.ts";
import { readTimes, timesQuery } from "./times.tsx";

/** A period of time, and the one of the same length before it. All times are in ms since 1970. */
export interface Period {
  from: number;
  /** Exclusive. */
  to: number;
  stepMs: number;
  /** For people, such as "last 7 days". */
  title: string;
  /** The query that leads to it, such as `days=7`. */
  query: string;
  /** The query by which lists show the same time, such as `from=2026-11-14`. */
  times: string;
  /** How many days it has, where it ends now; null for a custom one. */
  days: 1 | 7 | 30 | 90 | null;
}

const hourMs = 60 * 60 * 1000;
const dayMs = 24 * hourMs;

/** The periods that end now; the first is the default. */
export const usualPeriods = [
  { days: 1, title: "24 hours", stepMs: hourMs },
  { days: 7, title: "7 days", stepMs: 6 * hourMs },
  { days: 30, title: "30 days", stepMs: dayMs },
  { days: 90, title: "90 days", stepMs: 3 * dayMs },
] as const;

const daysMax = 400;

/**
 * Reads the period that a query asks for, by `days`, or by `from` and `to`; without either, it is
 * that of `usually` days. Throws 400.
 */
export function readPeriod(
  query: (name: string) => string | undefined,
  now: number,
  usually: Period["days"] = 1,
): Period {
  const given = readTimes(query);
  if (given.from !== null || given.to !== null) return customPeriod(given, now);
  const usual = usualPeriods.find(({ days }) => String(days) === query("days")) ??
    usualPeriods.find(({ days }) => days === usually) ?? usualPeriods[0];
  // Longer periods begin with a day, as what is counted by day does.
  const grain = usual.days === 1 ? hourMs : dayMs;
  const end = now - (now % grain) + grain;
  const { days, stepMs, title } = usual;
  const from = end - days * dayMs;
  return {
    from,
    to: now + 1,
    stepMs,
    title: `last ${title}`,
    query: `days=${days}`,
    times: timesQuery({ from }),
    days,
  };
}

function customPeriod(given: { from: number | null; to: number | null }, now: number): Period {
  const from = given.from ?? now - 30 * dayMs;
  const to = given.to ?? now;
  if (from >= to) throw badRequest("from", "‘From’ must be before ‘to’.");
  if (to - from > daysMax * dayMs) {
    throw badRequest("from", `A period has at most ${daysMax} days.`);
  }
  const start = from - (from % hourMs);
  const span = to - start;
  const stepMs = span <= 2 * dayMs ? hourMs : span <= 14 * dayMs ? 6 * hourMs : stepOf(span);
  const title = `${shown(start)} to ${shown(to)}`;
  const query = timesQuery(given.to === null ? { from: start } : { from: start, to });
  return { from: start, to, stepMs, title, query, times: query, days: null };
}

/** Whole days, so that there are at most 60 bars. */
function stepOf(span: number): number {
  return Math.ceil(span / dayMs / 60) * dayMs;
}

function shown(at: number): string {
  const iso = new Date(at).toISOString();
  return at % dayMs === 0 ? iso.slice(0, 10) : iso.slice(0, 16).replace("T", " ");
}

/** Returns the period of the same length before. */
export function periodBefore({ from, to }: Period): { from: number; to: number } {
  const length = Math.ceil((to - from) / hourMs) * hourMs;
  return { from: from - length, to: from };
}

/** Returns a period as a heading: `Last 7 days, UTC`. */
export function headingOf({ title }: Period): string {
  return `${title.slice(0, 1).toUpperCase()}${title.slice(1)}, UTC`;
}
