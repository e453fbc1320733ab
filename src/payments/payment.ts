import { type Amount, fromDecimal, least, toAmount, zero } from "../base/money.ts";
import type { AccountRef } from "../ledger/account.ts";
import { fromStripeUnits } from "./stripe.ts";
import type { PaymentChange } from "./stripe_events.ts";

/** A Stripe payment, and what has become of it. */
export interface Payment {
  activityId: string;
  ref: AccountRef;
  currency: string;
  /** What Stripe has reported since, in any order. */
  since: PaymentTotals;
}

/** Stripe's reports about a payment, and how much of them is recorded in the ledger. */
export interface PaymentTotals {
  /** By event: what was refunded, in Stripe's units. */
  refunded: Record<string, number>;
  /** By refund: what came back because the refund failed. */
  failed: Record<string, number>;
  /** By dispute: what was withdrawn, in Stripe's units. */
  withdrawn: Record<string, number>;
  /** The disputes whose money was reinstated. */
  reinstated: readonly string[];
  /** The amount that the ledger took back, less the reinstated part; including shortfalls. */
  taken: string;
  booked: string;
}

/** The totals of a payment about which nothing has been reported yet. */
export const emptyPaymentTotals: PaymentTotals = {
  refunded: {},
  failed: {},
  withdrawn: {},
  reinstated: [],
  taken: "0",
  booked: "0",
};

/** Adds a reported change to the totals; null where it is already included. */
export function applyChange({ since }: Payment, change: PaymentChange): PaymentTotals | null {
  const { refunded, failed, withdrawn, reinstated } = since;
  if (change.kind === "reinstatement") {
    const { disputeId } = change;
    if (reinstated.includes(disputeId)) return null;
    return { ...since, reinstated: [...reinstated, disputeId] };
  }
  if (change.kind === "failed refund") {
    const { refundId, units } = change;
    if (Object.hasOwn(failed, refundId)) return null;
    return { ...since, failed: { ...failed, [refundId]: units } };
  }
  const { disputeId, eventId, units } = change;
  if (disputeId === undefined) {
    if (Object.hasOwn(refunded, eventId)) return null;
    return { ...since, refunded: { ...refunded, [eventId]: units } };
  }
  if (Object.hasOwn(withdrawn, disputeId)) return null;
  return { ...since, withdrawn: { ...withdrawn, [disputeId]: units } };
}

/** Whether anything was ever taken back for this refund or dispute. */
export function wasDebited({ since }: Payment, change: PaymentChange): boolean {
  switch (change.kind) {
    case "reversal":
      return true;
    case "failed refund":
      return Object.keys(since.refunded).length > 0;
    case "reinstatement":
      return Object.hasOwn(since.withdrawn, change.disputeId);
  }
}

/** The amounts that the ledger lacks, compared to Stripe's reports of a payment. */
interface Outstanding {
  /** To be taken back. */
  take: Amount;
  /** Taken back before, and to be reinstated. */
  give: Amount;
  /** Short when it was taken back, and no longer due. */
  recovered: Amount;
}

/** Returns what to record, up to the amount of the whole payment. */
export function outstanding(since: PaymentTotals, whole: Amount, currency: string): Outstanding {
  const due = returnedAmount(since, whole, currency);
  const [taken, booked] = [fromDecimal(since.taken), fromDecimal(since.booked)];
  const give = excess(taken, due);
  const short = toAmount(booked - taken);
  const recovered = least(short, excess(toAmount(booked - give), due));
  return { take: excess(due, booked), give, recovered };
}

function excess(amount: Amount, over: Amount): Amount {
  return amount > over ? toAmount(amount - over) : zero;
}

/** Returns how much of the payment is back with the payer, or with their bank. */
function returnedAmount(since: PaymentTotals, whole: Amount, currency: string): Amount {
  const { refunded, failed } = since;
  // The failure of a refund may be reported before the refund.
  const paidBack = Math.max(0, sumOf(Object.values(refunded)) - sumOf(Object.values(failed)));
  const back = fromStripeUnits(paidBack, currency) + disputed(since, currency);
  return least(whole, toAmount(back));
}

/** The amount that banks hold for disputes that are not won. */
function disputed({ withdrawn, reinstated }: PaymentTotals, currency: string): Amount {
  const open = Object.entries(withdrawn).filter(([id]) => !reinstated.includes(id));
  return fromStripeUnits(sumOf(open.map(([, units]) => units)), currency);
}

function sumOf(units: readonly number[]): number {
  return units.reduce((sum, more) => sum + more, 0);
}
