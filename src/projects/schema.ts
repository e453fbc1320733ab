import { z } from "zod";
import type { TopUpRange } from "./currency.ts";
import { modelName, userIdSetting, withoutPattern } from "../base/fields.ts";
import { mergePatchSchema } from "./merge_patch_schema.ts";
import { holdWaitMs, holdWaitTotalMs, userIdCharsMax } from "../base/limits.ts";
import { isUserId } from "../base/user_id.ts";
import { refusalReasons } from "../base/refusal_reasons.ts";
import type { SubscribedPatterns } from "../events/event_patterns.ts";
import { alertsSchema } from "./alerts_schema.ts";
import { brandSchema } from "./brand_schema.ts";
import { type StripeKeys, stripeSchema } from "./stripe_schema.ts";
import { responseCacheSchema } from "./response_cache_schema.ts";
import {
  type ModelRoute,
  routesSchema,
  upstreamSchema,
  type UpstreamSettings,
  upstreamsSchema,
} from "./upstream_schema.ts";
import {
  modelPriceSchema,
  moneyDecimal,
  priceDecimal,
  pricingSchema,
  tokenCount,
} from "./price_schema.ts";

/** What an API key may do. */
export const scopes = ["chat", "money", "webhooks", "owner"] as const;
/** The scopes of an app's own key: everything but the console. */
export const appScopes = ["chat", "money", "webhooks"] as const satisfies readonly Scope[];
/** One thing that an API key may do. */
export type Scope = typeof scopes[number];

// Placeholders come after the host, so that a value cannot choose where links lead.
const addressTemplate = z.string().max(2048).refine((text) => {
  const filled = text.replace(/\{(user|project|amount)\}/g, "x");
  return /^https?:\/\/[^/?#{}\\@]+([/?#]|$)/.test(text) && URL.canParse(filled);
}, {
  error: "must be an http or https URL, with {user}, {project} and {amount} only after the host",
}).refine((text) => !/\{(?!(user|project|amount)\})/.test(text), {
  error: "may only contain the placeholders {user}, {project} and {amount}",
});

const oneToSix = "must be one to six amounts";
/** The settings of the hosted top-up page. */
const topUpSchema = z.strictObject({
  amounts: z.array(
    moneyDecimal("A suggested amount. It may be outside `min` and `max`.").refine(
      (amount) => amount !== "0",
      { error: "must be more than 0" },
    ),
  ).min(1, { error: oneToSix }).max(6, { error: oneToSix }).optional().meta({
    description: "Default: 5, 10 and 25, or what is usual in the currency.",
  }),
  min: moneyDecimal(
    "The least that may be entered. Default: 1, or what is usual in the currency.",
  ).optional(),
  max: moneyDecimal(
    "The most that may be entered. Default: 1000, or what is usual in the currency.",
  ).optional(),
  checkoutUrl: addressTemplate.nullable().default(null).meta({
    description: "Your own checkout, with {user}, {project} and {amount}. Default: Stripe's.",
  }),
}).meta({
  id: "TopUp",
  description:
    "The settings of the hosted top-up page. Every amount must be one that can be paid " +
    "in the currency.",
});
/** The settings of the hosted top-up page, as stored. */
export type TopUpSettings = TopUpRange & Pick<z.output<typeof topUpSchema>, "checkoutUrl">;

const rate = "must be from 1 to 1,000,000,000";
const count = z.int().min(1, { error: rate }).max(1_000_000_000, { error: rate }).nullable()
  .default(null);
const rates = { requestsPerMinute: count, tokensPerMinute: count, concurrent: count };

const perDay = moneyDecimal("The most that a user may spend in a day (UTC).");
const perMonth = moneyDecimal("The most that a user may spend in a month (UTC).");
const unlimited = z.literal("unlimited");
const ownCount = z.union([count.unwrap().unwrap(), unlimited]).optional();

/** The limits of one named user. What is absent is as for every user. */
const ownLimitsSchema = z.strictObject({
  requestsPerMinute: ownCount,
  tokensPerMinute: ownCount,
  concurrent: ownCount,
  spendPerDay: z.union([unlimited, perDay]).optional(),
  spendPerMonth: z.union([unlimited, perMonth]).optional(),
}).meta({
  id: "OwnLimits",
  description: "A user's own limits: what is absent is as for every user.",
});
const ownLimitsMax = 200;
const userIdWords = "must be a user's id: 1 to 128 characters, none of them a control character";

/** The limits of one user, and of one key. */
const limitsWith = (concurrent: typeof count) =>
  z.strictObject({
    user: z.strictObject({
      ...rates,
      concurrent,
      spendPerDay: perDay.nullable().default(null),
      spendPerMonth: perMonth.nullable().default(null),
    }).prefault({}),
    users: z.record(userIdSetting.refine(isUserId, { error: userIdWords }), ownLimitsSchema).refine(
      (users) => Object.keys(users).length <= ownLimitsMax,
      { error: `may name at most ${ownLimitsMax} users` },
    ).optional().meta({
      description: "Own limits of some users, by the user's id. They replace those of `user`.",
    }),
    key: z.strictObject(rates).prefault({}),
    reply: z.enum(["error", "message"]).default("error").meta({
      description: "The response to a user over a rate limit: 429, or an assistant message.",
    }),
    heldWaitMs: z.int().min(0).max(holdWaitTotalMs).optional().meta({
      description:
        "How long a call waits, in ms, while only the user's own running calls hold the " +
        `balance. Absent: ${holdWaitMs}.`,
    }),
  });
const limitsWords = "The limits of one user, and of one key; null is no limit.";
const limitsSchema = limitsWith(count).meta({ id: "Limits", description: limitsWords });
/** Most requests of one user at once in a new project that does not say. */
const usualConcurrent = 64;
const newLimitsSchema = limitsWith(count.unwrap().default(usualConcurrent)).meta({
  id: "NewLimits",
  description: limitsWords,
});
/** No limits. */
export const noLimits = limitsSchema.parse({});
/** The limits of one user. */
export type UserLimits = z.output<typeof limitsSchema>["user"];
/** The limits of one named user, where they differ from those of every user. */
export type OwnLimits = z.output<typeof ownLimitsSchema>;
/** The limits of one key. */
export type KeyLimits = z.output<typeof limitsSchema>["key"];

/** Why a user gets a message of the paywall. */
export const messageReasons = [
  ...Object.values(refusalReasons).map(({ code }) => code),
  "rate_limit",
  "cut",
  "low_balance",
] as const;
/** A reason for a message. */
export type MessageReason = typeof messageReasons[number];

const messageTemplate = z.string().min(1).max(1_000).refine((text) => text.includes("{{url}}"), {
  error: "must contain {{url}}",
}).refine((text) => !/\{\{(?!(url|name|balance)\}\})/.test(text), {
  error: "may only contain {{url}}, {{name}} and {{balance}}",
});

/** The currencies that a project can have: ISO 4217 codes in lower case. */
export const currencies: ReadonlySet<string> = new Set(
  Intl.supportedValuesOf("currency").map((code) => code.toLowerCase()),
);

const settings = {
  name: z.string().trim().min(1, { error: "must not be empty" }).max(128),
  ownerUserId: z.string().min(1).max(userIdCharsMax).meta({
    description: "Your own id of the project's owner. Events contain it.",
  }),
  pricing: pricingSchema,
  upstream: upstreamSchema.nullable().meta({
    description: "Where calls without a route are sent; null: the server's `UPSTREAM_URL`.",
  }),
  upstreams: upstreamsSchema.meta({ description: "Upstreams that routes lead to, by name." }),
  routes: routesSchema.meta({
    description: "Where the calls of a model go, by its name; `*` is for all without a route.",
  }),
  responseCache: responseCacheSchema,
  topUpUrl: addressTemplate.nullable().meta({
    description: "Your own top-up page, with {user}, {project} and {amount}; null: the " +
      "hosted page.",
  }),
  userSource: z.enum(["any", "header"]).meta({
    description: "`header`: only `X-Service-User` names the user.",
  }),
  userHeader: z.string().max(64).regex(/^[A-Za-z0-9][A-Za-z0-9-]*$/, {
    error: "must be the name of a header",
  }).nullable().meta({
    description: "Another header that names the user, after `X-Service-User`: " +
      "`X-OpenWebUI-User-Id`. Whoever has the key can send it.",
  }),
  maxOutputTokens: tokenCount.nullable().meta({
    description: "The most output tokens of one choice of a response, whatever is asked for; " +
      "null: no limit of yours.",
  }),
  allowedFields: z.array(z.string().min(1).max(64)).max(32).meta({
    description:
      "Request fields that are passed on although they are unknown, or cost what has no price.",
  }),
  unknownFields: z.enum(["refuse", "pass"]).meta({
    description:
      "Request fields that are neither OpenAI's nor known to be harmless: refused with " +
      "400, or passed on.",
  }),
  requestLogDays: z.int().min(0).max(365).meta({
    description: "How many days the log of requests is kept; 0: nothing is recorded.",
  }),
  keepResponses: z.enum(["on", "off"]).meta({
    description:
      "Whether turns of `/v1/responses` are kept for 30 days where the upstream keeps none, so " +
      "that `previous_response_id` works. `off`: no text of them is kept, and those that were are " +
      "removed.",
  }),
  paywallOnJson: z.enum(["message", "402"]).meta({
    description:
      "How a user is refused who must top up, where JSON or a call of a tool is required: by the " +
      "paywall's message in place of the response, or by the status 402, whose error has the " +
      "message and the link.",
  }),
  billingEvents: z.boolean().meta({
    description: "Whether `balance.*` and `usage.*` events are sent.",
  }),
  messages: z.record(
    z.string().regex(/^[a-z]{2,3}(-[a-z0-9]{2,8})*$/, {
      error: "must be a lowercase language tag",
    }),
    z.partialRecord(z.enum(messageReasons), messageTemplate),
  ).meta({
    description: "Your own messages to users, by lowercase language and reason, with {{url}}, " +
      "{{name}} and {{balance}}.",
  }),
  topUp: topUpSchema,
  brand: brandSchema,
  alerts: alertsSchema,
  stripe: stripeSchema.nullable().meta({
    description: "Your Stripe account. A change names both secrets.",
  }),
  trialCredits: moneyDecimal("Granted to each user once, with their first operation."),
  lowBalance: moneyDecimal("A response that leaves less than this ends with a warning.").nullable(),
  limits: limitsSchema,
};

/** The body of `POST /v1/admin/projects`. */
export const createProjectSchema = z.strictObject({
  ...settings,
  ownerUserId: settings.ownerUserId.default("owner"),
  currency: z.string().refine((code) => currencies.has(code), {
    error: "must be a lowercase ISO 4217 code",
  }).default("usd"),
  mode: z.enum(["default", "shared"]).default("default").meta({
    description: "`default`: users' money belongs to the project. `shared`: it is in wallets.",
  }),
  pricing: settings.pricing.prefault({}),
  upstream: settings.upstream.default(null),
  upstreams: settings.upstreams.default({}),
  routes: settings.routes.default({}),
  responseCache: settings.responseCache.prefault({}),
  topUpUrl: settings.topUpUrl.default(null),
  userSource: settings.userSource.default("any"),
  userHeader: settings.userHeader.default(null),
  maxOutputTokens: settings.maxOutputTokens.default(null),
  allowedFields: settings.allowedFields.default([]),
  unknownFields: settings.unknownFields.default("refuse"),
  requestLogDays: settings.requestLogDays.default(30),
  keepResponses: settings.keepResponses.default("on"),
  paywallOnJson: settings.paywallOnJson.default("message"),
  billingEvents: settings.billingEvents.default(true),
  messages: settings.messages.default({}),
  topUp: settings.topUp.prefault({}),
  brand: settings.brand.prefault({}),
  alerts: settings.alerts.prefault({}),
  stripe: settings.stripe.default(null),
  trialCredits: settings.trialCredits.default("0"),
  lowBalance: settings.lowBalance.default(null),
  limits: newLimitsSchema.prefault({}),
}).meta({ id: "NewProject" });
/** The settings of a new project. */
export type CreateProject = z.output<typeof createProjectSchema>;

/** The names of all settings that can be changed. */
export const settingNames: ReadonlySet<string> = new Set(Object.keys(settings));

const fixed = z.string().meta({ description: "Fixed: only the value that it has." });
const fixedFields = {
  id: fixed,
  status: fixed,
  mode: fixed,
  currency: fixed,
  createdAt: fixed,
  updatedAt: z.string().meta({ description: "Not read." }),
};
/** The names of the fields of a project that a change may repeat, but not give another value. */
export const fixedNames: ReadonlySet<string> = new Set(Object.keys(fixedFields));

/** A change of settings: the new value of each, and of each field of `pricing`. */
export const updateProjectSchema = z.strictObject({
  ...settings,
  pricing: z.strictObject({
    catalogue: z.boolean(),
    markupPercent: priceDecimal,
    priceFrom: pricingSchema.shape.priceFrom.unwrap(),
    requestFee: priceDecimal,
    models: z.record(modelName, modelPriceSchema),
  }).partial(),
}).partial();
/** The body of `PATCH /v1/admin/projects/{id}`, a merge patch (RFC 7396) of the settings. */
export const patchProjectSchema = mergePatchSchema(z.strictObject({ ...settings, ...fixedFields }))
  .meta({
    id: "ProjectChanges",
  });
/** A change of a project's settings. */
export type UpdateProject = z.output<typeof updateProjectSchema>;

/** The settings of a new API key. */
export const apiKeyFields = {
  name: z.string().max(128).default(""),
  scopes: z.array(z.enum(scopes)).min(1, { error: "must contain at least one" }).default([
    ...appScopes,
  ]).meta({ description: "`owner` opens the console; the others are parts of the API." }),
  defaultUser: userIdSetting.nullable().default(null).meta({
    description: "The end user of requests that name none.",
  }),
  user: userIdSetting.nullable().default(null).meta({
    description: "The only end user of the key. Requires `chat` as its single scope.",
  }),
  expiresAt: z.iso.datetime().nullable().default(null).meta({
    description: "When the key stops working: ISO 8601, in UTC. Null: never.",
    override: withoutPattern,
  }),
  models: z.array(modelName).min(1).max(64).nullable().default(null).meta({
    description:
      "The models that the key may call; a name that ends in `*` allows all that begin " +
      "like it. Null: all.",
  }),
  budget: moneyDecimal("What the key may spend in all, on models and by charges.").nullable()
    .default(null),
};

/** The body of `POST /v1/admin/projects/{id}/keys`. */
export const createKeySchema = z.strictObject(apiKeyFields).refine(
  (key) => key.user === null || key.scopes.every((scope) => scope === "chat"),
  {
    path: ["user"],
    error: "requires that chat is the key's single scope",
  },
).meta({ id: "NewApiKey" });
/** The settings of a new API key, validated. */
export type CreateKey = z.output<typeof createKeySchema>;

/** A project: its settings and prices. One row; its version changes with every change below it. */
export interface Project
  extends Omit<CreateProject, "upstream" | "upstreams" | "routes" | "stripe" | "topUp"> {
  id: string;
  upstream: UpstreamSettings | null;
  upstreams: Readonly<Record<string, UpstreamSettings>>;
  routes: Readonly<Record<string, ModelRoute>>;
  /** Which of the addresses for alerts get none yet. */
  unconfirmedEmails: readonly string[];
  stripe: StripeKeys | null;
  topUp: TopUpSettings;
  status: "active" | "archived";
  /**
   * Active subscriptions and the events they match. Written by webhooks; never shown with the
   * project.
   */
  listeners: SubscribedPatterns[];
  createdAt: string;
  updatedAt: string;
}

/** An API key's record. The key itself is not stored: only its SHA-256, and its last characters. */
export interface ApiKey extends CreateKey {
  id: string;
  projectId: string;
  /** The last four characters, to tell keys apart. */
  suffix: string;
  createdAt: string;
  revokedAt: string | null;
  /** The key that created it, or `operator`. */
  createdBy: string;
}
