import type { RefusalReason } from "../base/refusal_reasons.ts";
import { type Amount, least } from "../base/money.ts";

/**
 * Something that bounds what a user may spend: the balance, a limit, a budget. A hold asks all of
 * them as one list, so a new one is another member of that list.
 */
export interface SpendingBound {
  /** What can be spent now, while running calls hold money. Never negative. */
  readonly left: Amount;
  /** What could be spent if none of the user's own calls were running. Never negative. */
  readonly withoutOwnHolds: Amount;
  /** Why an amount is refused that this stops: a reason for the user, or an error to throw. */
  readonly refusal: RefusalReason | (() => Error);
  /** An operator's charge is not bound by it. */
  readonly forCallersOnly?: true;
}

/** What can be spent now within all of these bounds, of which there is at least one. */
export function leftIn(bounds: readonly SpendingBound[]): Amount {
  return bounds.map(({ left }) => left).reduce(least);
}

/** What could be spent within all of them if none of the user's own calls were running. */
export function withoutOwnHoldsIn(bounds: readonly SpendingBound[]): Amount {
  return bounds.map(({ withoutOwnHolds }) => withoutOwnHolds).reduce(least);
}

/**
 * Finds out why what a user asks for is refused. `fits` returns whether so much money is enough;
 * for what `leftIn` returns it is false. Returns `held_by_running` where only the user's own calls
 * stand in the way, and else the reason of the first bound in the list that is too narrow. Throws
 * what that bound throws.
 */
export function refusalBy(
  bounds: readonly SpendingBound[],
  fits: (most: Amount) => boolean,
): RefusalReason {
  const now = firstTooNarrow(bounds, (bound) => bound.left, fits);
  if (typeof now === "function") throw now();
  const later = firstTooNarrow(bounds, (bound) => bound.withoutOwnHolds, fits);
  if (typeof later === "function") throw later();
  return later ?? "held_by_running";
}

function firstTooNarrow(
  bounds: readonly SpendingBound[],
  amountOf: (bound: SpendingBound) => Amount,
  fits: (most: Amount) => boolean,
): SpendingBound["refusal"] | null {
  let most: Amount | null = null;
  for (const bound of bounds) {
    const amount = amountOf(bound);
    if (most !== null && amount >= most) continue;
    most = amount;
    if (!fits(most)) return bound.refusal;
  }
  return null;
}
