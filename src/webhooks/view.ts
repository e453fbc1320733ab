import { z } from "zod";
import { idOf, nextCursor, time } from "../base/fields.ts";
import { eventSchema } from "../events/event.ts";

const deliveryId = idOf("dly", "The delivery: the same in every try of it.");
const subscriptionId = idOf("sub", "The subscription.");
const paywallId = idOf("pw", "The project.");

const health = {
  consecutiveFailures: z.int().min(0).meta({ description: "Tries in a row that failed." }),
  lastDeliveredAt: time.nullable().meta({ description: "Null until a delivery succeeds." }),
};

/** A subscription as its owner sees it. */
export const subscriptionSchema = z.object({
  id: subscriptionId,
  paywallId,
  url: z.string().meta({ description: "The HTTPS endpoint that gets the deliveries." }),
  events: z.array(z.string()).meta({ description: "Names, families such as `balance.*`, or `*`." }),
  isActive: z.boolean(),
  description: z.string().optional(),
  customHeaders: z.record(z.string(), z.string()).optional().meta({
    description: "Sent with every delivery.",
  }),
  createdAt: time,
  updatedAt: time,
  secretSuffix: z.string().meta({ description: "The end of the signing secret." }),
  createdBy: z.string().meta({
    description: "The id of the API key that made it; `operator` where the admin key did.",
  }),
  ...health,
}).meta({ id: "Subscription" });
/** A subscription as its owner sees it. */
export type SubscriptionView = z.output<typeof subscriptionSchema>;

const secret = z.string().meta({ description: "The signing secret, shown this once." });
const withSecret = subscriptionSchema.extend({ secret }).meta({ id: "NewSubscription" });
const withNewSecret = subscriptionSchema.extend({ secret: secret.optional() })
  .meta({ id: "OperatedSubscription" });

/** A new subscription. */
export const madeSubscriptionSchema = z.object({ subscription: withSecret });
/** One, as it stands. */
export const oneSubscriptionSchema = z.object({ subscription: subscriptionSchema });
/** One, after an operator's change: with its secret where that is a new one. */
export const operatedSubscriptionSchema = z.object({ subscription: withNewSecret });
/** All that were asked for. */
export const subscriptionsSchema = z.object({ subscriptions: z.array(subscriptionSchema) });
/** One that has ended. */
export const deactivatedSchema = z.object({
  deactivated: z.literal(true),
  subscription: subscriptionSchema,
});

/** A delivery as it stands in the log, with the event as it was. */
export const logEntrySchema = z.object({
  id: deliveryId,
  subscriptionId,
  status: z.enum(["pending", "success", "error"]),
  attempts: z.int().min(0).meta({ description: "Tries that have ended." }),
  lastAttemptAt: time.nullable(),
  nextRetryAt: time.nullable(),
  responseCode: z.int().nullable().meta({ description: "What the endpoint last answered." }),
  responseLatencyMs: z.number().nullable().meta({ description: "How long that took, in ms." }),
  error: z.string().nullable().meta({ description: "Why the last try failed." }),
  createdAt: time,
  updatedAt: time,
  event: eventSchema.nullable().meta({
    description: "The event as it is sent; null in the answer to a redelivery.",
  }),
}).meta({ id: "LogEntry" });
/** A delivery as it stands in the log, with the event as it was. */
export type LogEntry = z.output<typeof logEntrySchema>;

/** A page of the log, newest first. */
export const logsSchema = z.object({ logs: z.array(logEntrySchema), nextCursor })
  .meta({ id: "Logs" });
/** One delivery, made pending again. */
export const redeliveredSchema = z.object({ delivery: logEntrySchema });

/** A redelivery of everything that failed at one subscription. */
export const redeliverySchema = z.object({
  redelivery: z.object({
    id: idOf("job", "The redelivery."),
    projectId: paywallId,
    subscriptionId,
    from: z.string().meta({ description: "From this delivery on." }),
    until: z.string().meta({ description: "Up to this one." }),
    redelivered: z.int().min(0).meta({ description: "How many are pending again so far." }),
    status: z.enum(["running", "done"]),
    createdAt: time,
    updatedAt: time,
  }).meta({ id: "Redelivery" }),
});

/** How far a walk over all secrets has come. */
export const resealSchema = z.object({
  resealed: z.int().min(0).meta({ description: "Secrets that were under an older key." }),
  nextCursor,
});
