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
}

/** As it is kept with the user's account: the amount in 1e-9 units. */
export type StoredUse = [month: string, requests: number, tokens: number, spent: string];

/** The use after an answer or a charge; a month begins at nothing. `now` is in ms since 1970. */
export function afterUse(
  use: MonthUse | null,
  { requests, tokens, spent }: Omit<MonthUse, "month">,
  now: number,
): MonthUse {
  const month = use?.month === monthOf(now) ? use.month : periodAt(now, "month", use?.month ?? "");
  if (use?.month !== month) return { month, requests, tokens, spent };
  return {
    month,
    requests: use.requests + requests,
    tokens: use.tokens + tokens,
    spent: toAmount(use.spent + spent),
  };
}

/** A use as it is stored. */
export function encodeUse({ month, requests, tokens, spent }: MonthUse): StoredUse {
  return [month, requests, tokens, spent.toString()];
}

/** Reads what `encodeUse` made; null where nothing was counted yet. */
export function decodeUse(stored: StoredUse | undefined): MonthUse | null {
  if (!stored) return null;
  const [month, requests, tokens, spent] = stored;
  return { month, requests, tokens, spent: spent === "0" ? zero : toAmount(BigInt(spent)) };
}

const named = { hour: -1, month: "" };

/** `YYYY-MM`, UTC. Worked out once an hour: making a date costs more than all else here. */
export function monthOf(now: number): string {
  const hour = hourOf(now);
  if (hour !== named.hour) {
    Object.assign(named, { hour, month: new Date(now).toISOString().slice(0, 7) });
  }
  return named.month;
}
