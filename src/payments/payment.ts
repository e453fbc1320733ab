import { type Amount, fromDecimal, least, toAmount, zero } from "../base/money.ts";
import type { AccountRef } from "../ledger/account.ts";
import { fromStripeUnits } from "./stripe.ts";
import type { PaymentChange } from "./stripe_events.ts";

/** What a payment at Stripe has become. */
export interface Payment {
  activityId: string;
  ref: AccountRef;
  currency: string;
  /** What Stripe has reported since, in any order; absent in rows of older versions. */
  since?: PaymentTotals;
}

/** What has become of a payment, by what Stripe told, and what of that is in the books. */
export interface PaymentTotals {
  /** By event: what was refunded, in Stripe's units. */
  refunded: Record<string, number>;
  /**
   * By refund: what came again of that, because it failed; absent where an old version wrote this.
   */
  failed?: Record<string, number>;
  /** By dispute: what was withdrawn, in the same. */
  withdrawn: Record<string, number>;
  /** The disputes whose money has come again. */
  reinstated: readonly string[];
  /** What was taken back in the books, less what was given back; and that with what is short. */
  taken: string;
  booked: string;
  /** What an old version had booked of this, which kept no account of it; absent where none had. */
  before?: string;
}

/** Of a payment of which nothing has been told yet. */
export const emptyPaymentTotals: PaymentTotals = {
  refunded: {},
  failed: {},
  withdrawn: {},
  reinstated: [],
  taken: "0",
  booked: "0",
};

/** What is known with what is told now; null where that is known already. */
export function applyChange(
  { since = emptyPaymentTotals }: Payment,
  told: PaymentChange,
): PaymentTotals | null {
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
export function wasDebited({ since = emptyPaymentTotals }: Payment, told: PaymentChange): boolean {
  switch (told.kind) {
    case "reversal":
      return true;
    case "failed refund":
      return Object.keys(since.refunded).length > 0;
    case "reinstatement":
      return Object.hasOwn(since.withdrawn, told.disputeId);
  }
}

/** What the books lack of a payment, by what is known of it. */
export interface Outstanding {
  /** To be taken back. */
  take: Amount;
  /** Taken back before, and to be given back. */
  give: Amount;
  /** Short when it was to be taken back, and due no more. */
  recovered: Amount;
}

/** What is to be booked, for as much of the whole payment to be taken back, or short, as is due. */
export function outstanding(since: PaymentTotals, whole: Amount, currency: string): Outstanding {
  const due = returnedAmount(since, whole, currency);
  const [taken, booked] = [fromDecimal(since.taken), fromDecimal(since.booked)];
  const before = fromDecimal(since.before ?? "0");
  const all = toAmount(booked + before);
  // What an old version took for a dispute that is still open is not due a second time.
  const give = excess(taken, excess(due, least(before, disputed(since, currency))));
  const short = toAmount(booked - taken);
  const recovered = least(short, excess(toAmount(all - give), due));
  return { take: excess(due, all), give, recovered };
}

function excess(amount: Amount, over: Amount): Amount {
  return amount > over ? toAmount(amount - over) : zero;
}

/** How much of the whole payment is with its payer again, or with their bank. */
export function returnedAmount(
  since: PaymentTotals,
  whole: Amount,
  currency: string,
): Amount {
  const { refunded, failed = {} } = since;
  // That one has failed may be told before that it was made.
  const paidBack = Math.max(0, sumOf(Object.values(refunded)) - sumOf(Object.values(failed)));
  const back = fromStripeUnits(paidBack, currency) + disputed(since, currency);
  return least(whole, toAmount(back));
}

/** What banks have of it, for disputes that are not won. */
function disputed({ withdrawn, reinstated }: PaymentTotals, currency: string): Amount {
  const open = Object.entries(withdrawn).filter(([id]) => !reinstated.includes(id));
  return fromStripeUnits(sumOf(open.map(([, units]) => units)), currency);
}

function sumOf(units: readonly number[]): number {
  return units.reduce((sum, more) => sum + more, 0);
}
