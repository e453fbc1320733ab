import { z } from "zod";

// Every event of the service and what its `data` holds, besides `paywallId` and `ownerUserId`,
// which all have. The README's table is made from this.

const id = z.string();
/** A decimal string in the project's currency. */
const amount = z.string().regex(/^\d+(\.\d+)?$/);
const currency = z.string().regex(/^[a-z]{3}$/);
/** The wallet that pays; in the default mode it is named as its user. */
const walletUserId = id;
/** The user as the caller names them. */
const externalUserId = id;
const activityId = id;
/** Null where only the hold is known that an answer left behind. */
const model = z.string().nullable();
const tokens = z.int().min(0);
const request = { requestId: id, walletUserId, model };

/** The `data` of each event, by its type. */
export const catalogue = {
  "updated": z.object({
    changedFields: z.array(z.string()),
    summarySections: z.array(z.string()),
  }),
  "archived": z.object({ reason: z.string() }),
  "secret.rotated": z.object({ secretLastFour: z.string(), actorId: id, actorType: z.string() }),

  "integration.connected": z.object({ integrationKey: z.string(), enabledBy: id }),
  "integration.disconnected": z.object({ integrationKey: z.string(), disabledBy: id }),
  "integration.stripe.webhook.rotated": z.object({
    webhookId: id,
    url: z.string(),
    secretSuffix: z.string(),
  }),

  "authorization.requested": z.object({
    externalUserId,
    walletUserId: walletUserId.nullable(),
    requestId: id,
    approvalUrl: z.string(),
    mode: z.string(),
  }),
  "authorization.completed": z.object({ externalUserId, walletUserId, connectionId: id }),
  "authorization.revoked": z.object({ externalUserId, walletUserId }),
  "authorization.declined": z.object({
    externalUserId,
    walletUserId: walletUserId.nullable(),
    requestId: id,
    reason: z.string(),
  }),

  "balance.deposit.created": z.object({
    walletUserId,
    externalUserId,
    amount,
    currency,
    source: z.string(),
    activityId,
  }),
  "balance.topup.link.created": z.object({
    walletUserId,
    redirectUrl: z.string(),
    checkoutSessionId: id,
  }),
  "balance.trial.granted": z.object({ walletUserId, credits: amount, activityId }),
  "balance.charge.created": z.object({
    walletUserId,
    externalUserId,
    activityId,
    amount,
    currency,
  }),
  "balance.charge.completed": z.object({ walletUserId, activityId, settlementReference: id }),
  "balance.charge.failed": z.object({
    walletUserId,
    activityId: activityId.nullable(),
    amount,
    errorCode: z.string(),
  }),
  "balance.refund.created": z.object({
    walletUserId,
    externalUserId,
    amount,
    currency,
    activityId,
    refundedActivityId: activityId,
  }),
  "balance.depleted": z.object({
    walletUserId,
    requestedAmount: amount.nullable(),
    availableBalance: amount,
  }),

  "usage.charge.created": z.object({
    walletUserId,
    activityId,
    model,
    promptTokens: tokens,
    completionTokens: tokens,
    cost: amount,
  }),
  "usage.charge.deferred": z.object({ deferredRequestId: id, model }),
  "usage.rate.limited": z.object({
    limit: z.string(),
    date: z.string(),
    model,
    walletUserId,
  }),

  "request.blocked": z.object({ walletUserId, reason: z.string(), requestId: id }),
  "stripe.checkout.session.completed": z.object({
    checkoutSessionId: id,
    amount,
    currency,
    walletUserId,
  }),

  "proxy.request.started": z.object(request),
  "proxy.request.completed": z.object(request),
  "proxy.request.canceled": z.object(request),
  "proxy.request.failed": z.object({ ...request, errorCode: z.string() }),
  "proxy.request.blocked": z.object({ requestId: id, walletUserId, reason: z.string() }),
} as const satisfies Record<string, z.ZodObject>;

/** The name of an event. */
export type EventType = keyof typeof catalogue;
/** What the event of one type says, without what all of them say. */
export type EventData<T extends EventType> = z.output<typeof catalogue[T]>;

/** Every event's name. */
export const eventTypes: readonly string[] = Object.keys(catalogue);
/** The version of every event so far: a change of shape is another version. */
export const eventVersion = "1.0";

/** Whether a project may leave this event out, by its `billingEvents`. */
export function isBillingEvent(type: string): boolean {
  return type.startsWith("balance.") || type.startsWith("usage.");
}
