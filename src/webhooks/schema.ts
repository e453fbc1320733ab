import { z } from "zod";
import { withoutPattern } from "../base/fields.ts";
import { isObject } from "../base/json.ts";
import { isKnownPattern, nearestPattern } from "../events/event_patterns.ts";
import type { Sealed } from "../store/secrets.ts";
import { urlCharsMax } from "./guard.ts";

/** Longest description that is kept, in characters; the rest is cut off. */
const descriptionCharsMax = 512;
const customHeadersMax = 10;
const headerValueCharsMax = 1024;
const eventsMax = 100;

// What the connection, our own headers or a cloud's metadata service live by.
const reservedHeader = new RegExp(
  "^(host|connection|keep-alive|te|trailers?|transfer-encoding|upgrade|expect|cookie|set-cookie|" +
    "accept-encoding|user-agent|date|via|forwarded|x-real-ip|age|cache-control|expires|pragma|" +
    "warning|clear-site-data|origin|referer|metadata-flavor)$|" +
    "^(proxy-|content-|x-forwarded-|sec-|access-control-|x-service-|webhook-|x-amz-|x-amzn-|" +
    "x-aws-|x-goog-|x-google-|x-gfe-|x-azure-|x-ms-)",
);

// Not as zod's record, which takes a number of many digits for one, and drops `__proto__`.
const customHeadersSchema = z.custom<Record<string, string>>(isObject, {
  error: "must be an object of texts",
}).superRefine((headers, context) => {
  const names = Object.keys(headers);
  const fault = (message: string) => context.addIssue({ code: "custom", message });
  if (names.length > customHeadersMax) fault(`must have at most ${customHeadersMax} entries`);
  if (new Set(names.map((name) => name.toLowerCase())).size < names.length) {
    fault("must not name a header twice");
  }
  for (const [name, value] of Object.entries(headers)) {
    const shown = name.slice(0, 64);
    if (!/^[A-Za-z0-9][A-Za-z0-9-]{0,63}$/.test(name)) {
      fault(`must not have the name '${shown}': letters, digits and hyphens, at most 64`);
    } else if (reservedHeader.test(name.toLowerCase())) {
      fault(`must not have the name '${shown}', which is reserved`);
    }
    if (
      typeof value !== "string" || !/^[\x20-\x7e]*$/.test(value) ||
      value.length > headerValueCharsMax
    ) {
      fault(`must have a visible ASCII value of at most ${headerValueCharsMax} at '${shown}'`);
    }
  }
}).meta({
  description: "Sent with every delivery; none that the connection or our own headers live by.",
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

const eventsSchema = z.array(z.string()).min(1, { error: "must name at least one event" })
  .max(eventsMax, { error: `must name at most ${eventsMax} events` })
  .superRefine((events, context) => {
    if (events.includes("*") && events.length > 1) {
      context.addIssue("must not mix '*' with other names");
    }
    for (const name of events) {
      if (isKnownPattern(name)) continue;
      const shown = name.slice(0, 100);
      context.addIssue(`knows no '${shown}'; the nearest name is '${nearestPattern(shown)}'`);
    }
  }).transform((events) => [...new Set(events)]).meta({
    description: "Event names, families such as `balance.*`, or `*` alone.",
    example: ["balance.*", "proxy.request.failed"],
  });

/** The head of a text, in characters: some take two units of it. */
function cut(text: string): string {
  return [...text.slice(0, 2 * descriptionCharsMax)].slice(0, descriptionCharsMax).join("");
}

/** What comes after the prefix of Standard Webhooks; null for a secret of another kind. */
function standardKey(secret: string): string | null {
  return secret.startsWith("whsec_") ? secret.slice("whsec_".length) : null;
}

/** A signing secret that a caller brings along. */
export const secretSchema = z.string().regex(/^[\x21-\x7e]{16,256}$/, {
  error: "must be 16 to 256 visible ASCII characters",
}).refine(
  (secret) =>
    standardKey(secret) === null || /^[A-Za-z0-9+/]{20,}={0,2}$/.test(standardKey(secret) ?? ""),
  {
    error: "must be base64 of at least 15 bytes after 'whsec_'",
  },
).meta({
  description:
    "A signing secret of your own; what follows `whsec_` is base64 of at least 15 bytes.",
});

/** The body of `POST /v1/webhooks/subscriptions`; the url is judged by the guard. */
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
/** What makes a subscription. */
export type CreateSubscription = z.output<typeof createSubscriptionSchema>;

/** The body of the operator's `PATCH …/subscriptions/{id}`. */
export const operateSubscriptionSchema = z.strictObject({
  isActive: z.literal(true).optional().meta({ description: "Enables it again." }),
  rotateSecret: z.literal(true).optional().meta({ description: "Gives it another secret." }),
  secret: secretSchema.optional(),
  overlapSeconds: z.int().min(0).max(7 * 86_400).default(86_400).meta({
    description:
      "How long the old secret goes on signing, in seconds; those before it, no longer than it.",
  }),
}).refine(({ isActive, rotateSecret }) => isActive || rotateSecret, {
  path: ["isActive"],
  error: "must be true, or rotateSecret must",
}).meta({ id: "SubscriptionChanges" });
/** What an operator does to a subscription. */
export type OperateSubscription = z.output<typeof operateSubscriptionSchema>;

/** The body of the operator's `POST …/subscriptions/{id}/redeliver`. */
export const redeliverAllSchema = z.strictObject({
  since: z.iso.datetime({ offset: true, error: "must be an ISO 8601 time" }).meta({
    description: "Failed deliveries from this moment on.",
    override: withoutPattern,
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
  /** The names are shown, the values may be secrets: JSON of all, sealed; null for none. */
  customHeaders: Sealed | null;
  secret: Sealed;
  secretSuffix: string;
  /** The secrets before, the last one first: each signs until its end, in ms. */
  oldSecrets: readonly OldSecret[];
  createdAt: string;
  updatedAt: string;
  /** The id of the API key that made it, or `operator`. */
  createdBy: string;
}

/** A secret that another one has taken the place of. */
export interface OldSecret {
  secret: Sealed;
  endsAt: number;
}

/** How deliveries to a subscription have fared, counted in attempts. */
export interface SubscriptionHealth {
  consecutiveFailures: number;
  lastDeliveredAt: string | null;
}

/** One try of a delivery. */
export interface Attempt {
  /** In milliseconds since 1970. */
  at: number;
  latencyMs: number;
  responseCode: number | null;
  /** What was wrong, as a word and a sentence for people; null for a success. */
  error: string | null;
}

/** Where a delivery stands. */
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
  /** Tries that have ended, over all redeliveries. */
  attempts: number;
  /** Tries that ended or began, since it last became pending. */
  claims: number;
  /** How many of `attempts` were made before it last became pending. */
  attemptsBefore: number;
  /** When it last became pending. */
  pendingSince: number;
  createdAt: number;
  updatedAt: number;
  /** While pending: when its next try, or the end of the lease of the running one, is due. */
  dueAt: number;
  /** Who tries it now, until `dueAt`. */
  lease: string | null;
  nextRetryAt: number | null;
  lastAttempt: Attempt | null;
  /** The head of the last answer's body. */
  responseHead: string | null;
  /** The last tries, newest last. */
  history: Attempt[];
  error: string | null;
}

/** A redelivery of everything that failed at one subscription. */
export interface RedeliveryJob {
  id: string;
  projectId: string;
  subscriptionId: string;
  /** From this delivery id on. */
  from: string;
  /** Up to this one: what fails later is not meant. */
  until: string;
  redelivered: number;
  status: "running" | "done";
  createdAt: string;
  updatedAt: string;
}
