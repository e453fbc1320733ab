import { type Amount, fromDecimal, least } from "../base/money.ts";
import type { AccountRef } from "../ledger/account.ts";
import { fromStripeUnits } from "./stripe.ts";
import type { Change } from "./stripe_event.ts";

/** What a payment at Stripe has become. */
export interface Payment {
  activityId: string;
  ref: AccountRef;
  currency: string;
  /** What Stripe told of it since, in any order; absent where an old version booked it. */
  since?: Since;
}

/** What has become of a payment, by what Stripe told, and what of that is in the books. */
export interface Since {
  /** By event: what was refunded, in Stripe's units. */
  refunded: Record<string, number>;
  /** By dispute: what was withdrawn, in the same. */
  withdrawn: Record<string, number>;
  /** The disputes whose money has come again. */
  reinstated: readonly string[];
  /** What was taken back in the books, less what was given back; and that with what was short. */
  taken: string;
  booked: string;
}

/** Of a payment of which nothing has been told yet. */
export const nothing: Since = {
  refunded: {},
  withdrawn: {},
  reinstated: [],
  taken: "0",
  booked: "0",
};

/** What is known with what is told now; null where that is known already. */
export function learn({ since = nothing }: Payment, told: Change): Since | null {
  const { refunded, withdrawn, reinstated } = since;
  if (told.kind === "reinstatement") {
    const { disputeId } = told;
    if (reinstated.includes(disputeId)) return null;
    return { ...since, reinstated: [...reinstated, disputeId] };
  }
  const { disputeId, eventId, units } = told;
  if (disputeId === undefined) {
    if (Object.hasOwn(refunded, eventId)) return null;
    return { ...since, refunded: { ...refunded, [eventId]: units } };
  }
  if (Object.hasOwn(withdrawn, disputeId)) return null;
  return { ...since, withdrawn: { ...withdrawn, [disputeId]: units } };
}

/** Whether something was ever taken back for what this is about. */
export function wasTaken({ since = nothing }: Payment, told: Change): boolean {
  return told.kind === "reversal" || Object.hasOwn(since.withdrawn, told.disputeId);
}

/** What is to be taken back of the whole payment, and what of it is in the books. */
export function standing(
  { refunded, withdrawn, reinstated, taken, booked }: Since,
  { whole, currency }: { whole: Amount; currency: string },
): Record<"due" | "taken" | "booked", Amount> {
  const open = Object.entries(withdrawn).filter(([id]) => !reinstated.includes(id));
  const units = [...Object.values(refunded), ...open.map(([, units]) => units)]
    .reduce((sum, units) => sum + units, 0);
  return {
    due: least(whole, fromStripeUnits(units, currency)),
    taken: fromDecimal(taken),
    booked: fromDecimal(booked),
  };
}
