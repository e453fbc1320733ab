import { z } from "zod";
import { type EntryReason, entryReasonNames } from "../base/entry_reasons.ts";

// Every event of the service and the fields of its `data`, besides `paywallId` and `ownerUserId`,
// which all have. The table in `guides/events.md` is generated from this.

const text = (example: string, description?: string) =>
  z.string().meta({ example, ...(description ? { description } : {}) });
const id = text;
/** A decimal string in the project's currency. */
const amount = (example: string, description = "A decimal in currency units.") =>
  z.string().regex(/^\d+(\.\d+)?$/).meta({ example, description });
const currency = z.string().regex(/^[a-z]{3}$/).meta({ example: "usd" });
const walletUserId = id(
  "ada",
  "The wallet that pays; in the default mode, its user.",
);
const payer = walletUserId.nullable().meta({
  example: "ada",
  description: "The wallet that pays; null where none is known.",
});
const externalUserId = id("ada", "The user, as the caller names them.");
const balanceVersion = z.int().min(1).meta({
  example: 7,
  description: "Rises with each change of this user's balance: the later of two has the higher.",
});
const activityId = id("act_01K9Z0C8Q4R7T2V5X8Z1B3D5F7");
const requestId = id("req_01K9Z0C8Q4R7T2V5X8Z1B3D5F7");
const model = z.string().nullable().meta({
  example: "gpt-4o-mini",
  description: "Null where only the call's hold is known.",
});
const upstreamName = text("main", "The name of the upstream.");
const tokens = (example: number) => z.int().min(0).meta({ example });
const request = { requestId, walletUserId, model };
const checkoutSessionId = id("cs_live_a1b2c3", "Stripe's id of the checkout session.");
const integrationKey = text("stripe");
const reason = text("insufficient_funds");
const moveReason = (example: EntryReason) =>
  z.enum(entryReasonNames).meta({ example, description: "Why the money moved." });
const refusals = z.int().min(1).meta({
  description: "Refusals that it stands for: of one user and reason there is one event a minute.",
  example: 1,
});

const alert = {
  alertId: id("alr_01K9Z0C8Q4R7T2V5X8Z1B3D5F7"),
  rule: text("errorRate", "The field of `alerts`."),
  summary: text("12 % of 240 calls of gpt-4o-mini failed.", "A sentence in English."),
  firedAt: text("2026-01-31T09:30:00.000Z"),
  subscriptionId: text("sub_01K9Z0C8Q4R7T2V5X8Z1B3D5F7", "The webhook that is failing.").nullable()
    .meta({ example: null }),
  checkoutSessionId: text("cs_live_a1b2c3", "The payment that is not booked.").nullable()
    .meta({ example: null }),
  model: text("gpt-4o-mini", "The model, where it is about one.").nullable(),
  externalUserId: text("ada", "The user, where it is about one.").nullable()
    .meta({ example: null }),
};

/** Describes an event's data, and when the event happens. */
const data = <S extends z.ZodRawShape>(when: string, shape: S) =>
  z.object(shape).meta({ description: when });

/** The `data` of each event, by its type. */
export const catalogue = {
  "updated": data("A project's settings or keys changed.", {
    changedFields: z.array(z.string()).meta({ example: ["pricing.models"] }),
    summarySections: z.array(z.string()).meta({ example: ["pricing"] }),
  }),
  "archived": data("A project was archived: it takes no more calls, charges and deposits.", {
    reason: text("archived by its owner"),
  }),
  "secret.rotated": data("An API key was created.", {
    secretLastFour: text("x7Qa", "The last characters of the key."),
    actorId: id("owner"),
    actorType: text("paywall-owner"),
  }),

  "integration.connected": data("A project's Stripe keys were set.", {
    integrationKey,
    enabledBy: id("owner"),
  }),
  "integration.disconnected": data("A project's Stripe keys were removed.", {
    integrationKey,
    disabledBy: id("owner"),
  }),
  "integration.stripe.webhook.rotated": data("A project's Stripe webhook secret was replaced.", {
    webhookId: id("pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7"),
    url: text("https://farebox.example/v1/stripe/pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7"),
    secretSuffix: text("x7Qa"),
  }),

  "authorization.requested": data(
    "A user was asked to authorize a project to charge their wallet.",
    {
      externalUserId,
      walletUserId: walletUserId.nullable(),
      requestId: id("areq_01K9Z0C8Q4R7T2V5X8Z1B3D5F7"),
      approvalUrl: text("https://farebox.example/authorize/eyJhbGciOi"),
      mode: text("shared"),
    },
  ),
  "authorization.completed": data("A user authorized a project to charge their wallet.", {
    externalUserId,
    walletUserId,
    connectionId: id("con_01K9Z0C8Q4R7T2V5X8Z1B3D5F7"),
  }),
  "authorization.revoked": data("A project may no longer charge a user's wallet.", {
    externalUserId,
    walletUserId,
  }),
  "authorization.declined": data("A user denied a project's request to charge their wallet.", {
    externalUserId,
    walletUserId: walletUserId.nullable(),
    requestId: id("areq_01K9Z0C8Q4R7T2V5X8Z1B3D5F7"),
    reason: text("declined"),
  }),

  "balance.deposit.created": data("Money was added to a balance.", {
    walletUserId,
    externalUserId,
    amount: amount("12.5"),
    currency,
    source: text("api", "The payment source."),
    reason: moveReason("payment"),
    activityId,
    balanceVersion,
  }),
  "balance.topup.link.created": data("A user started a checkout.", {
    walletUserId,
    redirectUrl: text("https://checkout.stripe.com/c/pay/cs_live_a1b2c3"),
    checkoutSessionId,
  }),
  "balance.trial.granted": data("A new user received the project's trial credits.", {
    walletUserId,
    credits: amount("1"),
    activityId,
    balanceVersion,
  }),
  "balance.charge.created": data("A charge was taken by `POST /v1/user/charge`.", {
    walletUserId,
    externalUserId,
    activityId,
    amount: amount("0.75"),
    currency,
    reason: moveReason("charge"),
    balanceVersion,
  }),
  "balance.charge.completed": data(
    "The same charge was settled, which is as soon as it is taken.",
    {
      walletUserId,
      activityId,
      settlementReference: activityId,
      balanceVersion,
    },
  ),
  "balance.charge.failed": data("A charge was refused.", {
    walletUserId: payer,
    activityId: activityId.nullable().meta({ example: null }),
    amount: amount("0.75"),
    errorCode: text("insufficient_funds"),
  }),
  "balance.refund.created": data("An activity was refunded, in part or in full.", {
    walletUserId,
    externalUserId,
    amount: amount("0.25"),
    currency,
    direction: z.enum(["credit", "debit"]).meta({
      example: "credit",
      description: "`credit`: given back to the user. `debit`: a payment, taken back.",
    }),
    reason: moveReason("refund"),
    activityId,
    refundedActivityId: id("act_01K9Z0C8Q4R7T2V5X8Z1B3D5F6"),
    balanceVersion,
  }),
  "balance.depleted": data("A user's balance is too small for what was requested.", {
    walletUserId,
    requestedAmount: amount("0.75", "Null where no amount was named.").nullable(),
    availableBalance: amount("0.5"),
  }),

  "usage.charge.created": data("A response was charged.", {
    walletUserId,
    activityId,
    model,
    promptTokens: tokens(812),
    completionTokens: tokens(96),
    cost: amount("0.0003588"),
    balanceVersion,
  }),
  "usage.charge.deferred": data("A streamed response began: it is charged at its end.", {
    deferredRequestId: requestId,
    model,
  }),
  "usage.rate.limited": data("A user or a key exceeded a rate limit of the project.", {
    limit: text("requests"),
    date: text("2026-01-31T09:30:00.000Z"),
    model,
    walletUserId: payer,
    count: refusals,
  }),

  "request.blocked": data("A call got the paywall's message as its response.", {
    walletUserId: payer,
    reason,
    requestId,
    count: refusals,
  }),
  "stripe.checkout.session.completed": data("A checkout at Stripe was paid.", {
    checkoutSessionId,
    amount: amount("10"),
    currency,
    walletUserId,
  }),
  "payment.pending": data(
    "A checkout is completed, and its payment is on its way, such as a bank transfer.",
    { checkoutSessionId, amount: amount("10"), currency, walletUserId },
  ),
  "payment.failed": data("A payment that was on its way has failed.", {
    checkoutSessionId,
    amount: amount("10"),
    currency,
    walletUserId,
  }),

  "webhook.failing": data(
    "All attempts at another subscription have failed for a day. Sent once, until one succeeds.",
    {
      subscriptionId: id("sub_01K9Z0C8Q4R7T2V5X8Z1B3D5F7"),
      host: text("hooks.my.app", "The host of its URL, with its port where it has one."),
      failingSince: text("2026-01-30T09:30:00.000Z", "The first failure since the last success."),
      lastDeliveredAt: text("2026-01-30T09:29:00.000Z", "Null where nothing was ever delivered.")
        .nullable(),
      consecutiveFailures: z.int().min(1).meta({ example: 214 }),
      responseCode: z.int().nullable().meta({
        example: null,
        description: "Of the last attempt; null where no response arrived.",
      }),
      error: text("tls_error: the certificate has expired", "Of the last attempt."),
    },
  ),

  "alert.fired": data("A condition holds that the project's `alerts` watch.", alert),
  "alert.resolved": data("The condition of an alert no longer holds.", {
    ...alert,
    resolvedAt: text("2026-01-31T10:30:00.000Z"),
  }),

  "proxy.request.started": data("A call was admitted and is sent upstream.", request),
  "proxy.request.completed": data("A call completed.", request),
  "proxy.request.canceled": data("The caller disconnected before the end of a response.", request),
  "proxy.request.failed": data("A call failed, or was ended.", {
    ...request,
    errorCode: text("upstream_error"),
    attempts: z.array(z.object({
      upstream: upstreamName,
      model,
      reason: text("failed", "The kind of the error, or its code."),
      upstreamCost: amount("0.0021", "What it is known to have cost by the provider's price list.")
        .nullable(),
    })).optional().meta({
      description: "All attempts, in their order, where a route leads to several upstreams.",
    }),
  }),
  "proxy.request.rerouted": data("An upstream failed, and another one was asked.", {
    ...request,
    from: upstreamName,
    fromModel: model,
    to: text("spare", "The name of the next upstream."),
    toModel: model,
    reason: text("rate_limited", "The kind of the error."),
  }),
  "proxy.request.blocked": data("A call was refused by a limit or a policy.", {
    requestId,
    walletUserId: payer,
    reason: text("rate_limit_exceeded"),
    count: refusals,
  }),
} as const satisfies Record<string, z.ZodObject>;

/** The name of an event. */
export type EventType = keyof typeof catalogue;
/** The data of one type of event, without the common fields. */
export type EventData<T extends EventType> = z.output<typeof catalogue[T]>;

/** Every event's name. */
export const eventTypes: readonly string[] = Object.keys(catalogue);
/** The version of every event's shape so far. */
export const eventVersion = "1.0";

/** Whether a project may disable this event by its `billingEvents`. */
export function isBillingEvent(type: string): boolean {
  return type.startsWith("balance.") || type.startsWith("usage.");
}
