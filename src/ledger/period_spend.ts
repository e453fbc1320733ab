import { type Amount, toAmount, zero } from "../base/money.ts";
import { dayOf, monthOf, periodAt } from "../base/period.ts";

/** What one user used in one month (UTC). */
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
}

/** What one response or charge adds. */
export type PeriodUsage = Pick<PeriodSpend, "requests" | "tokens" | "spent">;

/** As it is stored with the user's account: amounts in 1e-9 units. Old rows have no day or hour. */
export type StoredPeriodSpend = [
  month: string,
  requests: number,
  tokens: number,
  spent: string,
  day?: string,
  daySpent?: string,
  hour?: number,
  hourSpent?: string,
];

const hourMs = 60 * 60 * 1000;

/** Adds a response or a charge; each period starts at zero. `now` is in ms since 1970. */
export function addUsage(
  use: PeriodSpend | null,
  { requests, tokens, spent }: PeriodUsage,
  now: number,
): PeriodSpend {
  const day = dayAt(now, use);
  const daySpent = use?.day === day ? toAmount(use.daySpent + spent) : spent;
  const hour = Math.floor(now / hourMs);
  const hourSpent = use?.hour === hour ? toAmount(use.hourSpent + spent) : spent;
  const month = monthAt(now, use);
  const lately = { day, daySpent, hour, hourSpent };
  if (use?.month !== month) return { month, requests, tokens, spent, ...lately };
  return {
    month,
    requests: use.requests + requests,
    tokens: use.tokens + tokens,
    spent: toAmount(use.spent + spent),
    ...lately,
  };
}

/** Returns what was spent in the day and in the month of `now`. */
export function spentAt(now: number, use: PeriodSpend | null): { day: Amount; month: Amount } {
  return {
    day: use?.day === dayAt(now, use) ? use.daySpent : zero,
    month: use?.month === monthAt(now, use) ? use.spent : zero,
  };
}

/** Encodes the use of a period for the store. */
export function encodePeriodSpend(
  { month, requests, tokens, spent, day, daySpent, hour, hourSpent }: PeriodSpend,
): StoredPeriodSpend {
  return [
    month,
    requests,
    tokens,
    spent.toString(),
    day,
    daySpent.toString(),
    hour,
    hourSpent.toString(),
  ];
}

/** Decodes what `encodePeriodSpend` wrote; null where nothing was counted yet. */
export function decodePeriodSpend(stored: StoredPeriodSpend | undefined): PeriodSpend | null {
  if (!stored) return null;
  const [month, requests, tokens, spent, day = "", daySpent = "0", hour = -1, hourSpent = "0"] =
    stored;
  return {
    month,
    requests,
    tokens,
    spent: amountOf(spent),
    day,
    daySpent: amountOf(daySpent),
    hour,
    hourSpent: amountOf(hourSpent),
  };
}

function amountOf(stored: string): Amount {
  return stored === "0" ? zero : toAmount(BigInt(stored));
}

function dayAt(now: number, use: PeriodSpend | null): string {
  return use?.day === dayOf(now) ? use.day : periodAt(now, "day", use?.day ?? "");
}

function monthAt(now: number, use: PeriodSpend | null): string {
  return use?.month === monthOf(now) ? use.month : periodAt(now, "month", use?.month ?? "");
}
