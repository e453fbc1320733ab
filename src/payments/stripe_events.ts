import { z } from "zod";
import { ApiError } from "../base/errors.ts";

/** A checkout session, as far as we read it. */
export type CheckoutSession = z.output<typeof sessionSchema>;

/** What an event of Stripe's asks of us: a session to book, or what has become of a payment. */
export type StripeEvent = { kind: "session"; session: CheckoutSession } | PaymentChange;

/**
 * Money that went back to who had paid, or came to us again: a dispute was won, a refund failed.
 */
export type PaymentChange = Reversal | DisputeReinstatement | FailedRefund;

interface Reversal extends StripeEventInfo {
  kind: "reversal";
  /** Of a dispute: several events tell of each. */
  disputeId?: string;
  units: number;
}

interface DisputeReinstatement extends StripeEventInfo {
  kind: "reinstatement";
  disputeId: string;
}

interface FailedRefund extends StripeEventInfo {
  kind: "failed refund";
  /** Of a refund: several events tell of each. */
  refundId: string;
  units: number;
}

interface StripeEventInfo {
  eventId: string;
  /** The event's type. */
  reason: string;
  paymentIntent: string;
}

/** Stripe shows an object by its id, or whole. */
const stripeReference = z.union([
  z.string(),
  z.looseObject({ id: z.string() }).transform(({ id }) => id),
]).nullish();
const units = z.int().min(0);

const sessionSchema = z.looseObject({
  id: z.string(),
  metadata: z.record(z.string(), z.string()).nullish(),
  payment_status: z.string(),
  amount_total: units.nullish(),
  currency: z.string().nullish(),
  payment_intent: stripeReference,
});

const sessionEventSchema = z.looseObject({ data: z.looseObject({ object: sessionSchema }) });
const chargeRefundedSchema = z.looseObject({
  id: z.string(),
  data: z.looseObject({
    object: z.looseObject({ payment_intent: stripeReference, amount_refunded: units }),
    previous_attributes: z.looseObject({ amount_refunded: units.optional() }).nullish(),
  }),
});
const disputeEventSchema = z.looseObject({
  id: z.string(),
  data: z.looseObject({
    object: z.looseObject({
      id: z.string().optional(),
      status: z.string().optional(),
      payment_intent: stripeReference,
      amount: units,
    }),
  }),
});
const refundEventSchema = z.looseObject({
  id: z.string(),
  data: z.looseObject({
    object: z.looseObject({
      id: z.string(),
      status: z.string().nullish(),
      payment_intent: stripeReference,
      amount: units,
    }),
  }),
});

/**
 * Reads an event whose signature has been checked; null for what is none of ours. Throws 400
 * `unexpected_event` for a shape that we do not know: Stripe then sends it again, and shows the
 * fault to its owner, where a silent yes would lose a payment.
 */
export function readStripeEvent(event: { id: string; type: string }): StripeEvent | null {
  switch (event.type) {
    case "checkout.session.completed":
    case "checkout.session.async_payment_succeeded":
      return { kind: "session", session: parseEvent(sessionEventSchema, event).data.object };
    case "charge.refunded": {
      const { object, previous_attributes } = parseEvent(chargeRefundedSchema, event).data;
      const { payment_intent: paymentIntent, amount_refunded } = object;
      const count = amount_refunded - (previous_attributes?.amount_refunded ?? 0);
      if (!paymentIntent || count <= 0) return null;
      return { kind: "reversal", ...eventInfo(event), paymentIntent, units: count };
    }
    // The last is what older versions of Stripe's API call the one before it.
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

function eventInfo({ id: eventId, type: reason }: { id: string; type: string }) {
  return { eventId, reason };
}

/**
 * Whether a refund has come back: a bank may refuse it days after Stripe has told that it is made.
 */
function readRefund(
  event: { id: string; type: string },
  { id: refundId, status, payment_intent: paymentIntent, amount: units }: Refund,
): PaymentChange | null {
  if (!paymentIntent || (status !== "failed" && status !== "canceled")) return null;
  return { kind: "failed refund", ...eventInfo(event), paymentIntent, refundId, units };
}

type Refund = z.output<typeof refundEventSchema>["data"]["object"];
type Dispute = z.output<typeof disputeEventSchema>["data"]["object"];

/** What a dispute has done to the money: an inquiry, whose status is a warning, takes none. */
function readDispute(
  event: { id: string; type: string },
  { id: disputeId, status = "", payment_intent: paymentIntent, amount }: Dispute,
): PaymentChange | null {
  if (!paymentIntent || amount === 0) return null;
  const about = { ...eventInfo(event), paymentIntent, ...(disputeId ? { disputeId } : {}) };
  switch (event.type) {
    case "charge.dispute.created":
      return status.startsWith("warning_") ? null : { kind: "reversal", ...about, units: amount };
    case "charge.dispute.funds_withdrawn":
      return { kind: "reversal", ...about, units: amount };
    case "charge.dispute.closed":
      return disputeId && status === "won" ? { kind: "reinstatement", ...about, disputeId } : null;
    default:
      return disputeId ? { kind: "reinstatement", ...about, disputeId } : null;
  }
}

function parseEvent<T>(schema: z.ZodType<T>, event: { type: string }): T {
  const parsed = schema.safeParse(event);
  if (parsed.success) return parsed.data;
  const at = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new ApiError(400, {
    message: `An event '${String(event.type)}' of another shape than Stripe documents, at '${at}'.`,
    code: "unexpected_event",
  });
}
