import { type Amount, toAmount, zero } from "../base/money.ts";
import { periodAt } from "../base/period.ts";
import { hourOf } from "./tally.ts";

/** What one user did in one month, UTC. */
export interface MonthUse {
  /** `YYYY-MM`. */
  month: string;
  /** Answers that were charged. */
  requests: number;
  /** Of all classes. */
  tokens: number;
  /** By answers and by charges. */
  spent: Amount;
  /** The day of the last one, `YYYY-MM-DD`, UTC, and what was spent in it. */
  day: string;
  daySpent: Amount;
}

/** One answer or charge, as it counts. */
export type Used = Pick<MonthUse, "requests" | "tokens" | "spent">;

/** As it is kept with the user's account: amounts in 1e-9 units. Old rows have no day. */
export type StoredUse = [
  month: string,
  requests: number,
  tokens: number,
  spent: string,
  day?: string,
  daySpent?: string,
];

/** The use after an answer or a charge; each period begins at nothing. `now` is in ms since 1970. */
export function afterUse(
  use: MonthUse | null,
  { requests, tokens, spent }: Used,
  now: number,
): MonthUse {
  const day = dayAt(now, use);
  const daySpent = use?.day === day ? toAmount(use.daySpent + spent) : spent;
  const month = monthAt(now, use);
  if (use?.month !== month) return { month, requests, tokens, spent, day, daySpent };
  return {
    month,
    requests: use.requests + requests,
    tokens: use.tokens + tokens,
    spent: toAmount(use.spent + spent),
    day,
    daySpent,
  };
}

/** What was spent in the day and in the month of `now`. */
export function spentAt(now: number, use: MonthUse | null): { day: Amount; month: Amount } {
  return {
    day: use?.day === dayAt(now, use) ? use.daySpent : zero,
    month: use?.month === monthAt(now, use) ? use.spent : zero,
  };
}

/** A use as it is stored. */
export function encodeUse(
  { month, requests, tokens, spent, day, daySpent }: MonthUse,
): StoredUse {
  return [month, requests, tokens, spent.toString(), day, daySpent.toString()];
}

/** Reads what `encodeUse` made; null where nothing was counted yet. */
export function decodeUse(stored: StoredUse | undefined): MonthUse | null {
  if (!stored) return null;
  const [month, requests, tokens, spent, day = "", daySpent = "0"] = stored;
  return { month, requests, tokens, spent: amountOf(spent), day, daySpent: amountOf(daySpent) };
}

function amountOf(stored: string): Amount {
  return stored === "0" ? zero : toAmount(BigInt(stored));
}

function dayAt(now: number, use: MonthUse | null): string {
  return use?.day === namesAt(now).day ? use.day : periodAt(now, "day", use?.day ?? "");
}

function monthAt(now: number, use: MonthUse | null): string {
  return use?.month === monthOf(now) ? use.month : periodAt(now, "month", use?.month ?? "");
}

/** `YYYY-MM`, UTC. */
export function monthOf(now: number): string {
  return namesAt(now).month;
}

const named = { hour: -1, day: "", month: "" };

/** Worked out once an hour: making a date costs more than all else here. */
function namesAt(now: number): Readonly<typeof named> {
  const hour = hourOf(now);
  if (hour !== named.hour) {
    const text = new Date(now).toISOString();
    Object.assign(named, { hour, day: text.slice(0, 10), month: text.slice(0, 7) });
  }
  return named;
}
