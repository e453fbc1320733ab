import { z } from "zod";
import { idOf, nextCursor, time } from "../base/fields.ts";
import { eventSchema } from "../events/event.ts";

const deliveryId = idOf("dly", "The delivery's id, the same in every attempt.");
const subscriptionId = idOf("sub", "The subscription.");
const paywallId = idOf("pw", "The project.");

const health = {
  consecutiveFailures: z.int().min(0).meta({ description: "Consecutive failed attempts." }),
  lastDeliveredAt: time.nullable().meta({ description: "Null until a delivery succeeds." }),
  failingSince: time.optional().meta({
    description: "The first failed attempt since the last success; absent while there is none.",
  }),
};

/** A subscription as its owner sees it. */
const subscriptionSchema = z.object({
  id: subscriptionId,
  paywallId,
  url: z.string().meta({ description: "The HTTPS endpoint that receives the deliveries." }),
  events: z.array(z.string()).meta({ description: "Names, families such as `balance.*`, or `*`." }),
  isActive: z.boolean(),
  description: z.string().optional(),
  customHeaders: z.record(z.string(), z.string()).optional().meta({
    description: "Sent with every delivery.",
  }),
  createdAt: time,
  updatedAt: time,
  secretSuffix: z.string().meta({ description: "The last characters of the signing secret." }),
  createdBy: z.string().meta({
    description: "The id of the API key that created it, or `operator`.",
  }),
  ...health,
}).meta({ id: "Subscription" });
/** A subscription as its owner sees it. */
export type SubscriptionView = z.output<typeof subscriptionSchema>;

const secret = z.string().meta({ description: "The signing secret, shown only once." });
const withSecret = subscriptionSchema.extend({ secret }).meta({ id: "NewSubscription" });
const withNewSecret = subscriptionSchema.extend({ secret: secret.optional() })
  .meta({ id: "OperatedSubscription" });

/** A new subscription. */
export const madeSubscriptionSchema = z.object({ subscription: withSecret });
/** One subscription. */
export const oneSubscriptionSchema = z.object({ subscription: subscriptionSchema });
/** A subscription after an operator's change, with its secret if that is new. */
export const operatedSubscriptionSchema = z.object({ subscription: withNewSecret });
/** A list of subscriptions. */
export const subscriptionsSchema = z.object({ subscriptions: z.array(subscriptionSchema) });
/** A test event that was sent. */
export const testedSchema = z.object({
  delivery: z.object({ id: deliveryId }),
  event: z.object({ id: idOf("evt", "The event's id."), type: z.string() }),
});
/** A deactivated subscription. */
export const deactivatedSchema = z.object({
  deactivated: z.literal(true),
  subscription: subscriptionSchema,
});

/** A delivery as the log shows it, with the event as it was sent. */
const logEntrySchema = z.object({
  id: deliveryId,
  subscriptionId,
  status: z.enum(["pending", "success", "error"]),
  attempts: z.int().min(0).meta({ description: "Attempts that have ended." }),
  lastAttemptAt: time.nullable(),
  nextRetryAt: time.nullable(),
  responseCode: z.int().nullable().meta({ description: "The endpoint's last response code." }),
  responseLatencyMs: z.number().nullable().meta({
    description: "How long the last response took, in ms.",
  }),
  error: z.string().nullable().meta({ description: "Why the last attempt failed." }),
  createdAt: time,
  updatedAt: time,
  event: eventSchema.nullable().meta({
    description: "The event as it is sent; null in the response to a redelivery.",
  }),
}).meta({ id: "LogEntry" });
/** A delivery as the log shows it, with the event as it was sent. */
export type LogEntry = z.output<typeof logEntrySchema>;

/** A page of the log, newest first. */
export const logsSchema = z.object({ logs: z.array(logEntrySchema), nextCursor })
  .meta({ id: "Logs" });
/** One delivery that was made pending again. */
export const redeliveredSchema = z.object({ delivery: logEntrySchema });

/** A redelivery of everything that failed at one subscription. */
export const redeliverySchema = z.object({
  redelivery: z.object({
    id: idOf("job", "The redelivery."),
    projectId: paywallId,
    subscriptionId,
    from: z.string().meta({ description: "The first delivery of the range." }),
    until: z.string().meta({ description: "The last delivery of the range." }),
    redelivered: z.int().min(0).meta({ description: "How many are pending again so far." }),
    status: z.enum(["running", "done"]),
    createdAt: time,
    updatedAt: time,
  }).meta({ id: "Redelivery" }),
});

/** The progress of a walk over all secrets. */
export const resealSchema = z.object({
  resealed: z.int().min(0).meta({
    description: "How many secrets were encrypted with an older key.",
  }),
  unreadable: z.array(z.string()).meta({
    description: "The projects and subscriptions with secrets that no key of `SECRETS_KEY` " +
      "decrypts, by id. They stay as they are.",
  }),
  nextCursor,
});
