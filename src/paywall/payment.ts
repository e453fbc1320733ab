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
  /** By refund: what came again of that, because it failed; absent where an old version wrote this. */
  failed?: Record<string, number>;
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
  failed: {},
  withdrawn: {},
  reinstated: [],
  taken: "0",
  booked: "0",
};

/** What is known with what is told now; null where that is known already. */
export function learn({ since = nothing }: Payment, told: Change): Since | null {
  const { refunded, failed = {}, withdrawn, reinstated } = since;
  if (told.kind === "reinstatement") {
    const { disputeId } = told;
    if (reinstated.includes(disputeId)) return null;
    return { ...since, reinstated: [...reinstated, disputeId] };
  }
  if (told.kind === "failed refund") {
    const { refundId, units } = told;
    if (Object.hasOwn(failed, refundId)) return null;
    return { ...since, failed: { ...failed, [refundId]: units } };
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
  switch (told.kind) {
    case "reversal":
      return true;
    case "failed refund":
      return Object.keys(since.refunded).length > 0;
    case "reinstatement":
      return Object.hasOwn(since.withdrawn, told.disputeId);
  }
}

/** What is to be taken back of the whole payment, and what of it is in the books. */
export function standing(
  { refunded, failed = {}, withdrawn, reinstated, taken, booked }: Since,
  { whole, currency }: { whole: Amount; currency: string },
): Record<"due" | "taken" | "booked", Amount> {
  const open = Object.entries(withdrawn).filter(([id]) => !reinstated.includes(id));
  // That one has failed may be told before that it was made.
  const paidBack = Math.max(0, sumOf(Object.values(refunded)) - sumOf(Object.values(failed)));
  const units = paidBack + sumOf(open.map(([, units]) => units));
  return {
    due: least(whole, fromStripeUnits(units, currency)),
    taken: fromDecimal(taken),
    booked: fromDecimal(booked),
  };
}

function sumOf(units: readonly number[]): number {
  return units.reduce((sum, more) => sum + more, 0);
}
