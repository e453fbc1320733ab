import { type Amount, toAmount, zero } from "../base/money.ts";
import { dayOf, monthOf, periodAt } from "../base/period.ts";
import { countedIn, type EarlierCount, leftBehind } from "./earlier_counts.ts";

/** The use of one user in one month (UTC), with its last day and hour. */
export interface PeriodSpend {
  /** `YYYY-MM`. */
  month: string;
  /** Responses that were charged. */
  requests: number;
  /** Tokens of all classes. */
  tokens: number;
  /** Spent on responses and on charges. */
  spent: Amount;
  /** The day of the last use, `YYYY-MM-DD` in UTC, and what was spent on it. */
  day: string;
  daySpent: Amount;
  /** The hour of the last use, in hours since 1970, and what was spent in it. */
  hour: number;
  hourSpent: Amount;
  /** Counts of other months and days. A clock that is set right may lead back to them. */
  earlierMonths: readonly EarlierCount[];
  earlierDays: readonly EarlierCount[];
}

/** The amounts that one response or charge adds. */
export type PeriodUsage = Pick<PeriodSpend, "requests" | "tokens" | "spent">;

/** As it is stored with the user's account: amounts in 1e-9 units. */
export type StoredPeriodSpend = [
  month: string,
  requests: number,
  tokens: number,
  spent: string,
  day: string,
  daySpent: string,
  hour: number,
  hourSpent: string,
  earlierMonths?: readonly EarlierCount[],
  earlierDays?: readonly EarlierCount[],
];

const none: readonly EarlierCount[] = [];

const hourMs = 60 * 60 * 1000;

/**
 * Adds a response or a charge. A period starts at zero, once: when its time comes back, its count
 * continues. `now` is in ms since 1970.
 */
export function addUsage(
  use: PeriodSpend | null,
  { requests, tokens, spent }: PeriodUsage,
  now: number,
): PeriodSpend {
  const today = dayCount(now, use);
  const month = monthCount(now, use);
  const hour = Math.floor(now / hourMs);
  return {
    month: month.period,
    requests: month.requests + requests,
    tokens: month.tokens + tokens,
    spent: toAmount(month.spent + spent),
    day: today.period,
    daySpent: toAmount(today.spent + spent),
    hour,
    hourSpent: use?.hour === hour ? toAmount(use.hourSpent + spent) : spent,
    earlierMonths: month.earlier,
    earlierDays: today.earlier,
  };
}

/** Returns what was spent in the day and in the month of `now`. */
export function spentAt(now: number, use: PeriodSpend | null): { day: Amount; month: Amount } {
  return { day: dayCount(now, use).spent, month: monthCount(now, use).spent };
}

/** The day of `now`, what was spent on it, and the counts of other days beside it. */
function dayCount(now: number, use: PeriodSpend | null) {
  const { day = "", daySpent = zero, earlierDays = none } = use ?? {};
  if (day === dayOf(now)) return { period: day, spent: daySpent, earlier: earlierDays };
  const period = periodAt(now, "day", day);
  if (period === day) return { period, spent: daySpent, earlier: earlierDays };
  const [, spent = "0"] = countedIn(period, earlierDays) ?? [];
  const earlier = leftBehind([day, daySpent.toString()], earlierDays, period);
  return { period, spent: amountOf(spent), earlier };
}

/** The month of `now`, what was counted in it, and the counts of other months beside it. */
function monthCount(now: number, use: PeriodSpend | null) {
  const { month = "", spent: monthSpent = zero, earlierMonths = none } = use ?? {};
  const { requests = 0, tokens = 0 } = use ?? {};
  const current = { period: month, spent: monthSpent, requests, tokens, earlier: earlierMonths };
  if (month === monthOf(now)) return current;
  const period = periodAt(now, "month", month);
  if (period === month) return current;
  const before = countedIn(period, earlierMonths);
  const last: EarlierCount = [month, monthSpent.toString(), requests, tokens];
  return {
    period,
    spent: amountOf(before?.[1] ?? "0"),
    requests: before?.[2] ?? 0,
    tokens: before?.[3] ?? 0,
    earlier: leftBehind(last, earlierMonths, period),
  };
}

/** Encodes the use of a period for the store. */
export function encodePeriodSpend(use: PeriodSpend): StoredPeriodSpend {
  const { month, requests, tokens, spent, day, daySpent, hour, hourSpent } = use;
  const { earlierMonths, earlierDays } = use;
  const stored: StoredPeriodSpend = [
    month,
    requests,
    tokens,
    spent.toString(),
    day,
    daySpent.toString(),
    hour,
    hourSpent.toString(),
  ];
  if (earlierMonths.length + earlierDays.length > 0) stored.push(earlierMonths, earlierDays);
  return stored;
}

/** Decodes what `encodePeriodSpend` wrote; null where nothing was counted yet. */
export function decodePeriodSpend(stored: StoredPeriodSpend | undefined): PeriodSpend | null {
  if (!stored) return null;
  const [month, requests, tokens, spent, day, daySpent, ...rest] = stored;
  const [hour, hourSpent, earlierMonths = none, earlierDays = none] = rest;
  return {
    month,
    requests,
    tokens,
    spent: amountOf(spent),
    day,
    daySpent: amountOf(daySpent),
    hour,
    hourSpent: amountOf(hourSpent),
    earlierMonths,
    earlierDays,
  };
}

function amountOf(stored: string): Amount {
  return stored === "0" ? zero : toAmount(BigInt(stored));
}
