import { z } from "zod";
import { ApiError } from "../base/errors.ts";
import { plainText } from "../base/json.ts";

/** The types of events that a webhook at Stripe has to report. */
export const stripeEventTypes = [
  "checkout.session.completed",
  "checkout.session.async_payment_succeeded",
  "checkout.session.async_payment_failed",
  "charge.refunded",
  "refund.created",
  "refund.updated",
  "refund.failed",
  "charge.dispute.created",
  "charge.dispute.funds_withdrawn",
  "charge.dispute.closed",
  "charge.dispute.funds_reinstated",
] as const;

/** The fields of a checkout session that are read. */
export type CheckoutSession = z.output<typeof sessionSchema>;

/** What a Stripe event requires: to record a session, or a change of a payment. */
type StripeEvent = CheckoutReport | PaymentChange;

/** A report about a checkout session: that it is completed, paid, or that its payment failed. */
export interface CheckoutReport {
  kind: "session";
  session: CheckoutSession;
  hasFailed: boolean;
}

/** Money that went back to the payer, or came back to us: a dispute was won, a refund failed. */
export type PaymentChange =
  | RefundTotal
  | MadeRefund
  | FailedRefund
  | Reversal
  | DisputeReinstatement;

/** What was refunded of a payment in all, failed refunds included. Several events may report it. */
interface RefundTotal extends StripeEventInfo {
  kind: "refund total";
  units: number;
}

interface MadeRefund extends StripeEventInfo {
  kind: "refund";
  refundId: string;
  units: number;
}

interface Reversal extends StripeEventInfo {
  kind: "reversal";
  /** Several events report on each dispute. Absent where 0.9.0 stored a part of a refund. */
  disputeId?: string;
  units: number;
}

interface DisputeReinstatement extends StripeEventInfo {
  kind: "reinstatement";
  disputeId: string;
}

interface FailedRefund extends StripeEventInfo {
  kind: "failed refund";
  /** For a refund: several events report on each. */
  refundId: string;
  units: number;
}

interface StripeEventInfo {
  eventId: string;
  /** The event's type. */
  reason: string;
  paymentIntent: string;
  /** Absent in events of old versions of Stripe's API. */
  currency?: string;
}

/** Ids become parts of keys. Stripe's have at most 255 characters. */
const stripeId = z.string().min(1).max(255).refine((id) => id.isWellFormed());

/** Stripe references an object by its id, or includes it. */
const stripeReference = z.union([
  stripeId,
  z.looseObject({ id: stripeId }).transform(({ id }) => id),
]).nullish();
const units = z.int().min(0);
const eventSchema = z.looseObject({ id: stripeId, type: z.string() });

const sessionSchema = z.looseObject({
  id: stripeId,
  metadata: z.record(z.string(), z.string()).nullish(),
  payment_status: z.string(),
  amount_total: units.nullish(),
  amount_subtotal: units.nullish(),
  total_details: z.looseObject({
    amount_tax: units.nullish(),
    amount_discount: units.nullish(),
    amount_shipping: units.nullish(),
  }).nullish(),
  currency: z.string().nullish(),
  payment_intent: stripeReference,
});

const sessionEventSchema = z.looseObject({ data: z.looseObject({ object: sessionSchema }) });
const chargeRefundedSchema = z.looseObject({
  id: stripeId,
  data: z.looseObject({
    object: z.looseObject({
      payment_intent: stripeReference,
      amount_refunded: units,
      currency: z.string().nullish(),
    }),
  }),
});
const disputeEventSchema = z.looseObject({
  id: stripeId,
  data: z.looseObject({
    object: z.looseObject({
      id: stripeId.optional(),
      status: z.string().optional(),
      payment_intent: stripeReference,
      amount: units,
      currency: z.string().nullish(),
    }),
  }),
});
const refundEventSchema = z.looseObject({
  id: stripeId,
  data: z.looseObject({
    object: z.looseObject({
      id: stripeId,
      status: z.string().nullish(),
      payment_intent: stripeReference,
      amount: units,
      currency: z.string().nullish(),
    }),
  }),
});

/**
 * Reads an event whose signature was verified; null for types that are not handled. Throws 400
 * `unexpected_event` for an unknown shape: Stripe then sends it again and shows the error to the
 * account's owner, while a silent success would lose a payment.
 */
export function readStripeEvent(signed: unknown): StripeEvent | null {
  const event = parseEvent(eventSchema, signed);
  switch (event.type) {
    case "checkout.session.completed":
    case "checkout.session.async_payment_succeeded":
    case "checkout.session.async_payment_failed": {
      const session = parseEvent(sessionEventSchema, event).data.object;
      const hasFailed = event.type === "checkout.session.async_payment_failed";
      return { kind: "session", session, hasFailed };
    }
    case "charge.refunded": {
      const { object } = parseEvent(chargeRefundedSchema, event).data;
      const { payment_intent: paymentIntent, amount_refunded: units } = object;
      if (!paymentIntent || units === 0) return null;
      return { kind: "refund total", ...eventInfo(event, object.currency), paymentIntent, units };
    }
    // The last one is the name in older versions of Stripe's API.
    case "refund.created":
    case "refund.failed":
    case "refund.updated":
    case "charge.refund.updated":
      return readRefund(event, parseEvent(refundEventSchema, event).data.object);
    case "charge.dispute.created":
    case "charge.dispute.funds_withdrawn":
    case "charge.dispute.closed":
    case "charge.dispute.funds_reinstated":
      return readDispute(event, parseEvent(disputeEventSchema, event).data.object);
    default:
      return null;
  }
}

function eventInfo(
  { id: eventId, type: reason }: { id: string; type: string },
  currency: string | null | undefined,
) {
  return { eventId, reason, ...(currency ? { currency: currency.toLowerCase() } : {}) };
}

/** Reads a refund: a bank may reject it days after Stripe reported it as made. */
function readRefund(
  event: { id: string; type: string },
  { id: refundId, status, payment_intent: paymentIntent, amount: units, currency }: Refund,
): PaymentChange | null {
  if (!paymentIntent || units === 0) return null;
  const hasFailed = event.type === "refund.failed" || status === "failed" || status === "canceled";
  const about = { ...eventInfo(event, currency), paymentIntent, refundId, units };
  return { kind: hasFailed ? "failed refund" : "refund", ...about };
}

type Refund = z.output<typeof refundEventSchema>["data"]["object"];
type Dispute = z.output<typeof disputeEventSchema>["data"]["object"];

/**
 * Reads what a dispute has done to the money: an inquiry, whose status is a warning, takes none.
 */
function readDispute(
  event: { id: string; type: string },
  { id: disputeId = "", status = "", payment_intent: paymentIntent, amount, currency }: Dispute,
): PaymentChange | null {
  if (!paymentIntent || amount === 0) return null;
  const info = eventInfo(event, currency);
  const about = { ...info, paymentIntent, disputeId };
  switch (event.type) {
    case "charge.dispute.created":
      return status.startsWith("warning_") ? null : { kind: "reversal", ...about, units: amount };
    case "charge.dispute.funds_withdrawn":
      return { kind: "reversal", ...about, units: amount };
    case "charge.dispute.closed":
      return status === "won" ? { kind: "reinstatement", ...about } : null;
    default:
      return { kind: "reinstatement", ...about };
  }
}

/** The types of events about refunds and disputes. */
export const changeEventTypes = [
  "charge.refunded",
  "refund.created",
  "refund.updated",
  "refund.failed",
  "charge.refund.updated",
  "charge.dispute.created",
  "charge.dispute.funds_withdrawn",
  "charge.dispute.closed",
  "charge.dispute.funds_reinstated",
] as const;

/** Whether events of a type report about a checkout session. */
export function isSessionEvent(type: unknown): boolean {
  return typeof type === "string" && /^checkout\.session\.(completed|async_payment_)/.test(type);
}

function parseEvent<T>(schema: z.ZodType<T>, event: unknown): T {
  const parsed = schema.safeParse(event);
  if (parsed.success) return parsed.data;
  const at = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new ApiError(400, {
    message: `The event '${
      plainText(Object(event).type).slice(0, 64)
    }' does not have the shape that Stripe documents, at '${at}'.`,
    code: "unexpected_event",
  });
}
