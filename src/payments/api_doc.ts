import { z } from "zod";
import { type EndpointDoc, type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { idErrors, projectPath } from "../projects/api_doc.ts";

/** What came of an event of Stripe's. */
const stripeReceiptSchema = z.object({
  received: z.literal(true),
  outcome: z.enum(["booked", "debited", "credited", "kept", "ignored"]).meta({
    description: "`kept`: stored until the payment that it concerns is reported.",
  }),
});
/** The answer to an event of Stripe's. */
export type StripeReceipt = z.output<typeof stripeReceiptSchema>;

const stripe: EndpointDoc = {
  tag: "Money",
  access: "anyone",
  operationId: "takeStripeEvent",
  summary: "For Stripe: tell of a payment into a wallet",
  description: "A webhook of this server's own Stripe account, with the types " +
    "`checkout.session.completed`, `checkout.session.async_payment_succeeded`, " +
    "`charge.refunded`, `refund.failed`, `charge.dispute.created`, " +
    "`charge.dispute.funds_withdrawn`, `charge.dispute.closed` and " +
    "`charge.dispute.funds_reinstated`. Each event counts once. The body is Stripe's event, as it was signed.",
  headers: z.object({
    "Stripe-Signature": z.string().meta({ description: "By which Stripe signs its event." }),
  }),
  answers: {
    200: responseDocs("The event was taken.", stripeReceiptSchema, {
      booked: { received: true, outcome: "booked" },
    }),
  },
  errors: [
    { status: 400, code: "invalid_signature", when: "The signature does not fit." },
    {
      status: 400,
      code: "unexpected_event",
      when: "The event is signed, but of another shape than Stripe documents.",
    },
    {
      status: 400,
      code: "invalid_value",
      when: "The session's amount or currency is not the one that was asked for.",
    },
    { status: 403, code: "project_archived", when: "The project takes no new money." },
    { status: 403, code: "user_being_forgotten", when: "Stripe tells it again when that is done." },
    { status: 404, code: "not_found", when: "The server has no account at Stripe." },
    { status: 408, code: "request_timeout", when: "The body did not come within ten seconds." },
    { status: 413, code: null, when: "The event is larger than 512 KiB." },
    {
      status: 503,
      code: "account_contended",
      when: "Others kept changing the same account. Try again.",
    },
  ],
};

/** What Stripe calls. */
export const paymentsApiDoc: EndpointDocs = {
  "/v1/stripe": { POST: stripe },
  "/v1/stripe/:projectId": {
    POST: {
      ...stripe,
      operationId: "takeProjectsStripeEvent",
      summary: "For Stripe: tell of a payment to a project",
      path: projectPath,
      errors: [...stripe.errors ?? [], ...idErrors("project, or it has no keys of Stripe")],
    },
  },
};
