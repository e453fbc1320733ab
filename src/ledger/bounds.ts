import type { RefusalReason } from "../base/refusal_reasons.ts";
import { type Amount, least } from "../base/money.ts";

/**
 * Something that bounds what a user may spend: the balance, a limit, a budget. A hold asks all of
 * them as one list, so a new one is another member of that list.
 */
export interface SpendingBound {
  /** How much can be spent now, while running calls hold money. Never negative. */
  readonly left: Amount;
  /** How much could be spent if none of the user's own calls were running. Never negative. */
  readonly withoutOwnHolds: Amount;
  /** Why this bound refuses an amount: a reason for the user, or an error to throw. */
  readonly refusal: RefusalReason | (() => Error);
  /** Whether this bound does not apply to an operator's charge. */
  readonly forCallersOnly?: true;
}

/** The money that can be spent now within all of these bounds, of which there is at least one. */
export function leftIn(bounds: readonly SpendingBound[]): Amount {
  return bounds.map(({ left }) => left).reduce(least);
}

/** The money that could be spent within all bounds if none of the user's own calls were running. */
export function withoutOwnHoldsIn(bounds: readonly SpendingBound[]): Amount {
  return bounds.map(({ withoutOwnHolds }) => withoutOwnHolds).reduce(least);
}

/**
 * Finds out why a user's request is refused. `fits` returns whether so much money is enough; for
 * what `leftIn` returns it is false. Returns `held_by_running` where only the user's own calls
 * stand in the way, and else the reason of the first bound in the list that is too narrow. Throws
 * that bound's error, where it has one.
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
