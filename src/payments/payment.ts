import { type Amount, fromDecimal, least, toAmount, zero } from "../base/money.ts";
import type { AccountRef } from "../ledger/account.ts";
import { fromBytes } from "../base/json.ts";
import { fromStripeUnits } from "./stripe.ts";
import type { PaymentChange } from "./stripe_events.ts";

/** A Stripe payment, and what has become of it. */
export interface Payment {
  activityId: string;
  ref: AccountRef;
  currency: string;
  /** What was paid, in Stripe's units, where tax came on top of the amount. */
  paidUnits?: number;
  /** What Stripe has reported since, in any order. */
  since: PaymentTotals;
}

/** Stripe's reports about a payment, and how much of them is recorded in the ledger. */
export interface PaymentTotals {
  /** By event: the parts that 0.9.0 counted as refunded, in Stripe's units. */
  refunded: Record<string, number>;
  /** The most that an event has stated as refunded in all, failed refunds included. */
  refundedInAll: number;
  /** By refund: what it has, or had, paid back. */
  refunds: Record<string, number>;
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
  refundedInAll: 0,
  refunds: {},
  failed: {},
  withdrawn: {},
  reinstated: [],
  taken: "0",
  booked: "0",
};

/** Reads a payment as it is stored: rows of 0.9.0 lack what was added since. */
export function decodePayment(value: Uint8Array): Payment {
  const payment = fromBytes<Payment>(value);
  return { ...payment, since: { ...emptyPaymentTotals, ...payment.since } };
}

/** Adds a reported change to the totals; null where it is already included. */
export function applyChange({ since }: Payment, change: PaymentChange): PaymentTotals | null {
  const { refundedInAll, reinstated } = since;
  switch (change.kind) {
    case "refund total":
      return change.units > refundedInAll ? { ...since, refundedInAll: change.units } : null;
    case "reinstatement": {
      const { disputeId } = change;
      return reinstated.includes(disputeId)
        ? null
        : { ...since, reinstated: [...reinstated, disputeId] };
    }
    case "refund":
      return withUnits(since, "refunds", change.refundId, change.units);
    case "failed refund":
      return withUnits(since, "failed", change.refundId, change.units);
    case "reversal":
      return change.disputeId === undefined
        ? withUnits(since, "refunded", change.eventId, change.units)
        : withUnits(since, "withdrawn", change.disputeId, change.units);
  }
}

/** Adds what was reported under an id; null where the id is already there. */
function withUnits(
  since: PaymentTotals,
  name: "refunded" | "refunds" | "failed" | "withdrawn",
  id: string,
  units: number,
): PaymentTotals | null {
  const known = since[name];
  return Object.hasOwn(known, id) ? null : { ...since, [name]: { ...known, [id]: units } };
}

/** Whether anything was ever taken back for this refund or dispute. */
export function wasDebited({ since }: Payment, change: PaymentChange): boolean {
  switch (change.kind) {
    case "refund total":
    case "refund":
    case "reversal":
      return true;
    case "failed refund":
      return refundedUnits(since) > 0;
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

/** Returns what to record by these totals, up to the amount of the whole payment. */
export function outstanding(payment: Payment, since: PaymentTotals, whole: Amount): Outstanding {
  const due = returnedAmount(payment, since, whole);
  const [taken, booked] = [fromDecimal(since.taken), fromDecimal(since.booked)];
  const give = excess(taken, due);
  const short = toAmount(booked - taken);
  const recovered = least(short, excess(toAmount(booked - give), due));
  return { take: excess(due, booked), give, recovered };
}

function excess(amount: Amount, over: Amount): Amount {
  return amount > over ? toAmount(amount - over) : zero;
}

/**
 * Returns how much of the payment is back with the payer, or with their bank. Where tax came on top
 * of the amount, that is its part of what was paid.
 */
function returnedAmount(
  { currency, paidUnits }: Payment,
  since: PaymentTotals,
  whole: Amount,
): Amount {
  const units = paidBackUnits(since) + disputedUnits(since);
  const back = paidUnits === undefined
    ? fromStripeUnits(units, currency)
    : toAmount((BigInt(units) * whole) / BigInt(paidUnits));
  return least(whole, back);
}

/**
 * Returns what refunds have paid back. They are told in two ways: as the sum of all, of which an
 * event may be missing or sent again under another id, and each by itself, of which older webhooks
 * tell the failed ones only. Stripe's sum may count a failed refund, or not any more.
 */
function paidBackUnits(since: PaymentTotals): number {
  const { refunds, failed } = since;
  const standing = Object.entries(refunds).filter(([id]) => !Object.hasOwn(failed, id));
  // The failure of a refund may be reported before the refund.
  const ofAll = refundedUnits(since) - sumOf(Object.values(failed));
  return Math.max(0, ofAll, sumOf(standing.map(([, units]) => units)));
}

/** Returns the most that was ever refunded in all, failed refunds included. */
function refundedUnits({ refunded, refundedInAll, refunds }: PaymentTotals): number {
  return Math.max(
    refundedInAll,
    sumOf(Object.values(refunded)),
    sumOf(Object.values(refunds)),
  );
}

/** Returns what banks hold for disputes that are not won. */
function disputedUnits({ withdrawn, reinstated }: PaymentTotals): number {
  const open = Object.entries(withdrawn).filter(([id]) => !reinstated.includes(id));
  return sumOf(open.map(([, units]) => units));
}

function sumOf(units: readonly number[]): number {
  return units.reduce((sum, more) => sum + more, 0);
}
