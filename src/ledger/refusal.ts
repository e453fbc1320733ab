import { type Amount, least, zero } from "../base/money.ts";
import type { Account } from "./account.ts";
import type { SpendLimits } from "./spend_limits.ts";
import type { Trigger } from "../events/event.ts";
import type { Project } from "../projects/schema.ts";

/** Why money was not taken, as a caller is told. */
export type PublicRefusalReason = "insufficient_funds" | "limit_reached" | "authorization_required";

/**
 * What stands in the way, as a person is told: a want of leave or of money, the day's cap of a
 * wallet's owner, the project's own limits of a day and a month, answers that are still running.
 */
export type RefusalReason = PublicRefusalReason | "spend_limit" | "busy";

/** What a caller is told for each reason: on a model's response, and on a manual charge. */
export const publicReasons: Readonly<
  Record<RefusalReason, { chat: PublicRefusalReason; charge: PublicRefusalReason }>
> = {
  insufficient_funds: { chat: "insufficient_funds", charge: "insufficient_funds" },
  // Running calls hold the money: it is missing, not forbidden.
  busy: { chat: "insufficient_funds", charge: "insufficient_funds" },
  authorization_required: { chat: "authorization_required", charge: "authorization_required" },
  // Beyond a wallet's daily cap, only its owner can authorize more.
  limit_reached: { chat: "limit_reached", charge: "authorization_required" },
  spend_limit: { chat: "limit_reached", charge: "limit_reached" },
};

/** What keeps money from being taken that would fit into some of what a user has. */
export function refusalReason(
  { account: { balance }, spending, withoutOwnHolds }: {
    account: Pick<Account, "balance">;
    spending: Pick<SpendLimits, "allowance">;
    /** What could be taken if nothing else ran. */
    withoutOwnHolds: Amount;
  },
  fits: (amount: Amount) => boolean,
): RefusalReason {
  if (fits(withoutOwnHolds)) return "busy";
  const allowance = spending.allowance(zero);
  if (fits(allowance === null ? balance : least(balance, allowance))) return "spend_limit";
  return fits(balance) ? "limit_reached" : "insufficient_funds";
}

/** Where a user whose money is not taken is sent, and the sentence that says so. */
export type Offer = (
  project: Project,
  user: string,
  asked: {
    obstacle: RefusalReason;
    trigger: Trigger;
    amount?: string;
    balance: string;
    languages: string | null;
  },
) => Promise<{ url: string; message: string }>;
