import { z } from "zod";
import { type EndpointDoc, type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { idErrors, projectPath } from "../projects/api_doc.ts";

/** The outcome of a Stripe event. */
const stripeReceiptSchema = z.object({
  received: z.literal(true),
  outcome: z.enum(["booked", "debited", "credited", "kept", "ignored"]).meta({
    description: "`kept`: stored until the payment that it concerns is reported.",
  }),
});
/** The response to a Stripe event. */
export type StripeReceipt = z.output<typeof stripeReceiptSchema>;

const stripe: EndpointDoc = {
  tag: "Money",
  access: "anyone",
  operationId: "takeStripeEvent",
  summary: "For Stripe: report a payment into a wallet",
  description: "The webhook of this server's own Stripe account, with the types " +
    "`checkout.session.completed`, `checkout.session.async_payment_succeeded`, " +
    "`charge.refunded`, `refund.failed`, `charge.dispute.created`, " +
    "`charge.dispute.funds_withdrawn`, `charge.dispute.closed` and " +
    "`charge.dispute.funds_reinstated`. Each event counts once. The body is Stripe's event, as it was signed.",
  headers: z.object({
    "Stripe-Signature": z.string().meta({ description: "Stripe's signature of the event." }),
  }),
  answers: {
    200: responseDocs("The event was processed.", stripeReceiptSchema, {
      booked: { received: true, outcome: "booked" },
    }),
  },
  errors: [
    { status: 400, code: "invalid_signature", when: "The signature is not valid." },
    {
      status: 400,
      code: "unexpected_event",
      when: "The event is signed, but its shape is not the one that Stripe documents.",
    },
    {
      status: 400,
      code: "invalid_value",
      when: "The session's amount or currency is not the one that was requested, its user cannot " +
        "exist, or a refund or dispute has another currency than its payment.",
    },
    {
      status: 403,
      code: "project_archived",
      when: "The project is archived: it takes no new money.",
    },
    { status: 403, code: "user_being_forgotten", when: "Stripe sends the event again later." },
    { status: 404, code: "not_found", when: "The server has no Stripe account." },
    { status: 408, code: "request_timeout", when: "The body did not arrive within ten seconds." },
    { status: 413, code: null, when: "The event is larger than 512 KiB." },
    {
      status: 503,
      code: "account_contended",
      when: "Too many concurrent writes to the same account. Try again.",
    },
  ],
};

/** The API documentation of the endpoints that Stripe calls. */
export const paymentsApiDoc: EndpointDocs = {
  "/v1/stripe": { POST: stripe },
  "/v1/stripe/:projectId": {
    POST: {
      ...stripe,
      operationId: "takeProjectsStripeEvent",
      summary: "For Stripe: report a payment to a project",
      path: projectPath,
      errors: [...stripe.errors ?? [], ...idErrors("project, or it has no Stripe keys")],
    },
  },
};
