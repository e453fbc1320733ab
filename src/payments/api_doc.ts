import { z } from "zod";
import { cursor, nextCursor, withoutPattern } from "../base/fields.ts";
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

/** The body of a call that reconciles. */
export const reconcileSchema = z.strictObject({
  since: z.iso.datetime({ offset: true, error: "must be an ISO 8601 time" }).meta({
    description: "Sessions that were created since this time.",
    override: withoutPattern,
  }),
  cursor,
});

const count = z.int().min(0);
const reconciledSchema = z.object({
  payments: count.meta({ description: "Paid sessions of this service on this page." }),
  booked: count.meta({ description: "How many of them were booked now." }),
  bookedBefore: count,
  unbooked: z.array(z.object({ session: z.string(), reason: z.string() })).meta({
    description: "The sessions that cannot be booked, and why.",
  }),
  changes: count.meta({ description: "Refunds and disputes that are recorded, now or before." }),
  nextCursor,
}).meta({ id: "Reconciled" });
/** The result of one page of a reconciliation. */
export type Reconciled = z.output<typeof reconciledSchema>;

const reconcile: EndpointDoc = {
  tag: "Operations",
  access: "operator",
  operationId: "reconcileStripe",
  summary: "Reconcile wallets with Stripe",
  description: "Reads a page of paid sessions at Stripe, or after those of refunds and disputes " +
    "of the last 30 days, and records what is missing. Call it until `nextCursor` is null; " +
    "`deno task farebox stripe reconcile` does so. Nothing is recorded twice.",
  body: {
    schema: reconcileSchema,
    examples: { since: { since: "2026-01-01T00:00:00Z" } },
  },
  answers: {
    200: responseDocs("The result of this page.", reconciledSchema, {
      missed: {
        payments: 3,
        booked: 1,
        bookedBefore: 2,
        unbooked: [],
        changes: 0,
        nextCursor: "changes",
      },
    }),
  },
  errors: [
    { status: 400, code: "invalid_value", when: "`since` or `cursor` is not valid." },
    { status: 404, code: "not_found", when: "The server has no Stripe account." },
    { status: 502, code: "stripe_unavailable", when: "Stripe does not return its payments." },
    {
      status: 503,
      code: "account_contended",
      when: "Too many concurrent writes to the same account. Try again.",
    },
  ],
};

const stripe: EndpointDoc = {
  tag: "Money",
  access: "anyone",
  operationId: "takeStripeEvent",
  summary: "Receive a Stripe event for wallets",
  description: "The webhook of this server's own Stripe account, with the types " +
    "`checkout.session.completed`, `checkout.session.async_payment_succeeded`, " +
    "`checkout.session.async_payment_failed`, " +
    "`charge.refunded`, `refund.created`, `refund.updated`, `refund.failed`, " +
    "`charge.dispute.created`, " +
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
    {
      status: 400,
      code: "invalid_signature",
      when:
        "The event cannot be verified: the signature is absent, does not fit or is older than " +
        "five minutes, or the URL names no project with Stripe keys. The answer does not say which.",
    },
    {
      status: 400,
      code: "unexpected_event",
      when: "The event is signed, but its shape is not the one that Stripe documents.",
    },
    {
      status: 400,
      code: "invalid_value",
      when: "The session's amount or currency is not the one that was requested, its user cannot " +
        "exist, a refund or dispute has another currency than its payment, or the event is of " +
        "Stripe's test mode and the key is live, or the reverse.",
    },
    {
      status: 403,
      code: "project_archived",
      when: "The project is archived: it takes no new money.",
    },
    { status: 403, code: "user_being_forgotten", when: "Stripe sends the event again later." },
    { status: 404, code: "not_found", when: "The server has no Stripe account." },
    { status: 408, code: "request_timeout", when: "The body did not arrive within ten seconds." },
    { status: 413, code: null, when: "The event is larger than 64 KiB." },
    {
      status: 503,
      code: "account_contended",
      when: "Too many concurrent writes to the same account. Try again.",
    },
  ],
};

/** The body of a call that connects a Stripe account. */
export const connectStripeSchema = z.strictObject({
  secretKey: z.string().min(1).max(512).meta({
    description: "A secret or restricted key, which may write webhook endpoints and checkouts.",
  }),
});

const connectStripeDoc: EndpointDoc = {
  tag: "Projects",
  access: "operator",
  operationId: "connectStripe",
  summary: "Connect Stripe",
  description: "Creates the webhook at Stripe, and stores its signing secret with the key, both " +
    "encrypted. Repeat it to replace the key: the former webhook of this project is removed.",
  path: projectPath,
  body: {
    schema: connectStripeSchema,
    examples: { key: { secretKey: "sk_test_of_the_owner" } },
  },
  answers: {
    200: responseDocs(
      "The account is connected.",
      z.object({
        connected: z.literal(true),
        webhookUrl: z.string().meta({ description: "Where Stripe reports payments." }),
      }),
      {
        connected: {
          connected: true,
          webhookUrl: "https://farebox.example/v1/stripe/pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
        },
      },
    ),
  },
  errors: [
    { status: 400, code: "invalid_value", when: "`secretKey` is no key of Stripe." },
    { status: 400, code: "stripe_refused", when: "Stripe does not accept the key or the address." },
    { status: 400, code: "mode_conflict", when: "The project's users pay into wallets." },
    { status: 502, code: "stripe_unavailable", when: "Stripe does not respond." },
    ...idErrors("project"),
  ],
};

/** The API documentation of the endpoints for Stripe. */
export const paymentsApiDoc: EndpointDocs = {
  "/v1/admin/stripe/reconcile": { POST: reconcile },
  "/v1/admin/projects/:projectId/stripe/reconcile": {
    POST: {
      ...reconcile,
      operationId: "reconcileProjectsStripe",
      summary: "Reconcile a project with Stripe",
      path: projectPath,
      errors: [
        ...reconcile.errors ?? [],
        { status: 400, code: "mode_conflict", when: "The project's users pay into wallets." },
        ...idErrors("project, or it has no Stripe keys"),
      ],
    },
  },
  "/v1/admin/projects/:projectId/stripe/connect": { POST: connectStripeDoc },
  "/v1/stripe": { POST: stripe },
  "/v1/stripe/:projectId": {
    POST: {
      ...stripe,
      operationId: "takeProjectsStripeEvent",
      summary: "Receive a Stripe event for a project",
      path: projectPath,
      errors: (stripe.errors ?? []).filter(({ status }) => status !== 404),
    },
  },
};
