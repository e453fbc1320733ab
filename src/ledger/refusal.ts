import { type Amount, least, zero } from "../base/money.ts";
import type { RefusalReason } from "../base/refusal_reasons.ts";
import type { Account } from "./account.ts";
import type { SpendLimits } from "./spend_limits.ts";
import type { Trigger } from "../events/event.ts";
import type { Project } from "../projects/schema.ts";

/**
 * Finds out why an amount is refused, by asking whether it would fit without the user's own holds,
 * without the wallet's daily cap, and by the balance alone.
 */
export function refusalReason(
  { account: { balance }, spending, withoutOwnHolds }: {
    account: Pick<Account, "balance">;
    spending: Pick<SpendLimits, "allowance">;
    /** What could be taken if none of the user's calls were running. */
    withoutOwnHolds: Amount;
  },
  fits: (amount: Amount) => boolean,
): RefusalReason {
  if (fits(withoutOwnHolds)) return "held_by_running";
  const allowance = spending.allowance(zero);
  if (fits(allowance === null ? balance : least(balance, allowance))) return "project_limit";
  return fits(balance) ? "daily_cap" : "insufficient_funds";
}

/** Finds the link to show to a refused user, and the message that contains it. */
export type Offer = (
  project: Project,
  user: string,
  refused: {
    reason: RefusalReason;
    trigger: Trigger;
    amount?: string;
    balance: string;
    languages: string | null;
  },
) => Promise<{ url: string; message: string }>;
