import { z } from "zod";
import { ApiError } from "../base/errors.ts";

/** A checkout session, as far as we read it. */
export type Session = z.output<typeof sessionSchema>;

/** What an event of Stripe's asks of us: a session to book, or money that has gone back. */
export type Told =
  | { kind: "session"; session: Session }
  | { kind: "reversal"; eventId: string; reason: string; paymentIntent: string; units: number };

/** Stripe shows an object by its id, or whole. */
const reference = z.union([
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
  payment_intent: reference,
});

const session = z.looseObject({ data: z.looseObject({ object: sessionSchema }) });
const refunded = z.looseObject({
  id: z.string(),
  data: z.looseObject({
    object: z.looseObject({ payment_intent: reference, amount_refunded: units }),
    previous_attributes: z.looseObject({ amount_refunded: units.optional() }).nullish(),
  }),
});
const disputed = z.looseObject({
  id: z.string(),
  data: z.looseObject({ object: z.looseObject({ payment_intent: reference, amount: units }) }),
});

/**
 * Reads an event whose signature has been checked; null for what is none of ours. Throws 400
 * `unexpected_event` for a shape that we do not know: Stripe then sends it again, and shows the
 * fault to its owner, where a silent yes would lose a payment.
 */
export function readTold(event: { id: string; type: string }): Told | null {
  const { id: eventId, type: reason } = event;
  const reversal = (paymentIntent: string | null | undefined, count: number): Told | null =>
    paymentIntent && count > 0
      ? { kind: "reversal", eventId, reason, paymentIntent, units: count }
      : null;
  switch (event.type) {
    case "checkout.session.completed":
    case "checkout.session.async_payment_succeeded":
      return { kind: "session", session: shaped(session, event).data.object };
    case "charge.refunded": {
      const { object, previous_attributes } = shaped(refunded, event).data;
      const before = previous_attributes?.amount_refunded ?? 0;
      return reversal(object.payment_intent, object.amount_refunded - before);
    }
    case "charge.dispute.created": {
      const { payment_intent, amount } = shaped(disputed, event).data.object;
      return reversal(payment_intent, amount);
    }
    default:
      return null;
  }
}

function shaped<T>(schema: z.ZodType<T>, event: { type: string }): T {
  const parsed = schema.safeParse(event);
  if (parsed.success) return parsed.data;
  const at = parsed.error.issues[0]?.path.join(".") ?? "";
  throw new ApiError(400, {
    message: `An event '${String(event.type)}' of another shape than Stripe documents, at '${at}'.`,
    code: "unexpected_event",
  });
}
