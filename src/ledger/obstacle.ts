import type { Amount } from "../base/money.ts";
import { availableIn } from "./account.ts";
import type { Draft } from "./draft.ts";

/** Why money was not taken, as a caller is told. */
export type Refusal = "insufficient_funds" | "limit_reached" | "authorization_required";

/**
 * What stands in the way, as a person is told: a want of leave or of money, the day's cap of a
 * wallet's owner, the project's own limits of a day and a month, answers that are still running.
 */
export type Obstacle = Refusal | "spend_limit" | "busy";

/** What keeps money from being taken that would fit into some of what a user has. */
export function obstacleOf(
  { account: { balance }, account, ownHolds, available, spendable }: Draft,
  fits: (amount: Amount) => boolean,
): Obstacle {
  const own = availableIn(account);
  if (spendable < available && fits(available)) return "spend_limit";
  if (available < own && fits(own)) return ownHolds.length > 0 ? "busy" : "limit_reached";
  return fits(balance) ? "busy" : "insufficient_funds";
}
