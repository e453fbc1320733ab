import { type Amount, least, toAmount, zero } from "../base/money.ts";
import { type Account, type Hold, isExpired } from "./account.ts";

/** Expired holds that one write ends, with their events for 100 subscriptions: some 400 KiB. */
const endingMax = 24;

/**
 * Takes expired holds out of an account and gives those that this write is to end, which are some of
 * the `own` ones; all at once, since what one held may pay for another. Of what is left for later
 * writes, no more stays held than will be charged: what was used when it was last renewed.
 */
export function takeExpired(account: Account, own: readonly Hold[], now: number): Hold[] {
  if (!account.holds.some((hold) => isExpired(hold, now))) return [];
  const ending = own.filter((hold) => isExpired(hold, now)).slice(0, endingMax);
  account.holds = account.holds.filter((hold) => !ending.includes(hold)).map((hold) =>
    isExpired(hold, now) ? { ...hold, amount: least(hold.amount, hold.used) } : hold
  );
  account.held = account.holds.reduce<Amount>((sum, { amount }) => toAmount(sum + amount), zero);
  return ending;
}
