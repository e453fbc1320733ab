import { z } from "zod";
import { withoutPattern } from "../base/fields.ts";
import { isObject } from "../base/json.ts";
import { isMask, maskFault } from "../base/secret_mask.ts";
import { isKnownPattern, nearestPattern } from "../events/event_patterns.ts";
import type { Sealed } from "../store/secrets.ts";
import { urlCharsMax } from "./delivery/guard.ts";

/** The longest description that is stored, in characters; the rest is cut off. */
const descriptionCharsMax = 512;
const customHeadersMax = 10;
const headerValueCharsMax = 1024;
const eventsMax = 100;

// Headers that belong to the connection, to Farebox, or to a cloud's metadata service.
const reservedHeader = new RegExp(
  "^(host|connection|keep-alive|te|trailers?|transfer-encoding|upgrade|expect|cookie|set-cookie|" +
    "accept-encoding|user-agent|date|via|forwarded|x-real-ip|age|cache-control|expires|pragma|" +
    "warning|clear-site-data|origin|referer|metadata-flavor)$|" +
    "^(proxy-|content-|x-forwarded-|sec-|access-control-|x-service-|webhook-|x-amz-|x-amzn-|" +
    "x-aws-|x-goog-|x-google-|x-gfe-|x-azure-|x-ms-)",
);

// zod's record would take a number with many digits for a key, and drops `__proto__`.
const customHeadersSchema = z.custom<Record<string, string>>(isObject, {
  error: "must be an object of strings",
}).superRefine((headers, context) => {
  const names = Object.keys(headers);
  const addIssue = (message: string) => context.addIssue({ code: "custom", message });
  if (names.length > customHeadersMax) addIssue(`must have at most ${customHeadersMax} entries`);
  if (new Set(names.map((name) => name.toLowerCase())).size < names.length) {
    addIssue("must not contain the same header twice");
  }
  for (const [name, value] of Object.entries(headers)) {
    const shown = name.slice(0, 64);
    if (!/^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/.test(name)) {
      addIssue(`must not contain the name '${shown}': letters, digits and hyphens, at most 64`);
    } else if (reservedHeader.test(name.toLowerCase())) {
      addIssue(`must not contain the name '${shown}', which is reserved`);
    }
    if (
      typeof value !== "string" || !/^[\x20-\x7e]*$/.test(value) ||
      value.length > headerValueCharsMax
    ) {
      addIssue(`must have a visible ASCII value of at most ${headerValueCharsMax} at '${shown}'`);
    }
  }
}).meta({
  description: "Sent with every delivery. Names that the connection or Farebox uses are reserved.",
  override: {
    type: "object",
    maxProperties: customHeadersMax,
    propertyNames: { pattern: "^[A-Za-z0-9][A-Za-z0-9-]{0,63}$" },
    additionalProperties: {
      type: "string",
      maxLength: headerValueCharsMax,
      pattern: "^[\\x20-\\x7e]*$",
    },
  },
});

const eventsSchema = z.array(z.string()).min(1, { error: "must contain at least one event" })
  .max(eventsMax, { error: `must contain at most ${eventsMax} events` })
  .superRefine((events, context) => {
    if (events.includes("*") && events.length > 1) {
      context.addIssue("must not combine '*' with other names");
    }
    for (const name of events) {
      if (isKnownPattern(name)) continue;
      const shown = name.slice(0, 100);
      context.addIssue(
        `contains the unknown event '${shown}'; the closest is '${nearestPattern(shown)}'`,
      );
    }
  }).transform((events) => [...new Set(events)]).meta({
    description: "Event names, families such as `balance.*`, or `*` alone.",
    example: ["balance.*", "proxy.request.failed"],
  });

/** Cuts a text to a number of characters, some of which take two UTF-16 units. */
function cut(text: string): string {
  return [...text.slice(0, 2 * descriptionCharsMax)].slice(0, descriptionCharsMax).join("");
}

/**
 * Returns the part of a secret after the prefix of Standard Webhooks; null for another kind of
 * secret.
 */
function standardKey(secret: string): string | null {
  return secret.startsWith("whsec_") ? secret.slice("whsec_".length) : null;
}

/** A signing secret supplied by the caller. */
const secretSchema = z.string().refine((secret) => !isMask(secret), { error: maskFault }).regex(
  /^[\x21-\x7e]{16,256}$/,
  {
    error: "must be 16 to 256 visible ASCII characters",
  },
).refine(
  (secret) =>
    standardKey(secret) === null || /^[A-Za-z0-9+/]{20,}={0,2}$/.test(standardKey(secret) ?? ""),
  {
    error: "must be base64 of at least 15 bytes after 'whsec_'",
  },
).meta({
  description:
    "A signing secret of your own. After `whsec_` it must be base64 of at least 15 bytes.",
});

/** The body of `POST /v1/webhooks/subscriptions`; the guard checks the URL. */
export const createSubscriptionSchema = z.strictObject({
  url: z.string().meta({
    description: "An HTTPS endpoint at a public address, without credentials or fragment.",
    override: { type: "string", maxLength: urlCharsMax },
  }),
  events: eventsSchema,
  description: z.string().transform((text) => cut(text.trim())).meta({
    description: `Cut to ${descriptionCharsMax} characters.`,
  }).nullish(),
  customHeaders: customHeadersSchema.nullish(),
  secret: secretSchema.nullish(),
}).meta({ id: "SubscriptionRequest" });
/** The settings of a new subscription. */
export type CreateSubscription = z.output<typeof createSubscriptionSchema>;

/** The body of the operator's `PATCH …/subscriptions/{id}`. */
export const operateSubscriptionSchema = z.strictObject({
  isActive: z.literal(true).optional().meta({ description: "Enables the subscription again." }),
  rotateSecret: z.literal(true).optional().meta({ description: "Replaces the signing secret." }),
  secret: secretSchema.optional(),
  overlapSeconds: z.int().min(0).max(7 * 86_400).default(86_400).meta({
    description:
      "How long the old secret keeps signing, in seconds. Secrets before it end no later.",
  }),
}).refine(({ isActive, rotateSecret }) => isActive || rotateSecret, {
  path: ["isActive"],
  error: "must be true, unless rotateSecret is",
}).meta({ id: "SubscriptionChanges" });
/** An operator's change to a subscription. */
export type OperateSubscription = z.output<typeof operateSubscriptionSchema>;

/** The body of the operator's `POST …/subscriptions/{id}/redeliver`. */
export const redeliverAllSchema = z.strictObject({
  since: z.iso.datetime({ offset: true, error: "must be an ISO 8601 time" }).meta({
    description: "Failed deliveries from this time on.",
    override: withoutPattern,
  }),
});

/** The body of `POST …/subscriptions/{id}/test`. */
export const testSubscriptionSchema = z.strictObject({
  type: z.string().max(64).default("updated").meta({
    description: "The event to send an example of, whether or not the subscription lists it.",
  }),
});

/** A subscription as it is stored. */
export interface Subscription {
  id: string;
  projectId: string;
  url: string;
  events: string[];
  isActive: boolean;
  description: string | null;
  /**
   * Headers of the subscriber, as encrypted JSON; null for none. Their names are shown, their
   * values may be secrets.
   */
  customHeaders: Sealed | null;
  secret: Sealed;
  secretSuffix: string;
  /** Former secrets, most recent first: each signs until its end, in ms. */
  oldSecrets: readonly OldSecret[];
  createdAt: string;
  updatedAt: string;
  /** The id of the API key that created the subscription, or `operator`. */
  createdBy: string;
}

/** A secret that was replaced. */
export interface OldSecret {
  secret: Sealed;
  endsAt: number;
}

/** The recent success of deliveries to a subscription, counted in attempts. */
export interface SubscriptionHealth {
  consecutiveFailures: number;
  lastDeliveredAt: string | null;
  /** The first failure since the last success; absent while there is none. */
  failingSince?: string;
  /** When the project's other subscriptions were notified of the failures. */
  failingReportedAt?: string;
}

/** One attempt of a delivery. */
interface Attempt {
  /** In milliseconds since 1970. */
  at: number;
  latencyMs: number;
  responseCode: number | null;
  /** The error, as a word and a sentence for people; null for a success. */
  error: string | null;
}

/** The state of a delivery. */
export type DeliveryStatus = "pending" | "success" | "error";

/** One delivery of one event to one subscription. Times in milliseconds since 1970. */
export interface Delivery {
  id: string;
  projectId: string;
  subscriptionId: string;
  eventId: string;
  eventType: string;
  eventVersion: string;
  status: DeliveryStatus;
  /** Attempts that have ended, over all redeliveries. */
  attempts: number;
  /** Attempts that were started since the delivery last became pending. */
  claims: number;
  /** How many of `attempts` were made before the delivery last became pending. */
  attemptsBefore: number;
  /** When the delivery last became pending. */
  pendingSince: number;
  createdAt: number;
  updatedAt: number;
  /**
   * While the delivery is pending: when its next attempt, or the end of the running one's lease, is
   * due.
   */
  dueAt: number;
  /** The id of the process that runs the attempt, until `dueAt`; null where none does. */
  lease: string | null;
  nextRetryAt: number | null;
  lastAttempt: Attempt | null;
  /** The start of the last response's body. */
  responseHead: string | null;
  /** The last attempts, newest last. */
  history: Attempt[];
  error: string | null;
}

/** A redelivery of everything that failed at one subscription. */
export interface RedeliveryJob {
  id: string;
  projectId: string;
  subscriptionId: string;
  /** The first delivery id of the range. */
  from: string;
  /** The last id of the range: later failures are not included. */
  until: string;
  redelivered: number;
  status: "running" | "done";
  createdAt: string;
  updatedAt: string;
}
