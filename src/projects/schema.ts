import { z } from "zod";
import { formatAmount, parseAmount } from "../base/money.ts";
import { userIdCharsMax } from "../base/limits.ts";
import type { Listener } from "../events/listener.ts";
import type { Sealed } from "../store/secrets.ts";

/** What an API key may do. */
export const scopes = ["chat", "money", "webhooks"] as const;
/** One thing that an API key may do. */
export type Scope = typeof scopes[number];

const decimal = z.string().transform((text, context) => {
  const amount = parseAmount(text);
  if (amount !== null) return formatAmount(amount);
  context.addIssue('must be a decimal string such as "0.15", with at most 9 decimals');
  return z.NEVER;
});

const tokens = z.int().min(1).max(10_000_000);

/** A model's price and bounds; prices are decimal strings per million tokens. */
export const modelPriceSchema = z.strictObject({
  input: decimal,
  /** Absent: cached input costs what input costs. */
  cachedInput: decimal.optional(),
  /** Absent: writing the cache costs what input costs. */
  cacheWrite: decimal.optional(),
  /** Reasoning tokens are part of the output, and cost the same. */
  output: decimal,
  maxOutputTokens: tokens.optional(),
  /** Fewer affordable output tokens than this is the paywall. Default 16. */
  minOutputTokens: tokens.optional(),
  /** The same with tools, JSON formats and reasoning models. Default 1,024. */
  minStructuredOutputTokens: tokens.optional(),
  /** Most prompt tokens of one content part, by its type: {"image_url": 1445}. */
  mediaTokens: z.record(z.string().max(64), tokens).optional(),
  /** Thinks in hidden tokens: an aborted stream is drained, to be charged exactly. */
  reasoning: z.boolean().optional(),
  /** What an aborted stream costs: the estimate so far, or the whole answer, drained. */
  onAbort: z.enum(["estimate", "drain"]).optional(),
  displayName: z.string().min(1).max(128).optional(),
  description: z.string().max(512).optional(),
});
/** A model's price and bounds, as stored. */
export type ModelPrice = z.output<typeof modelPriceSchema>;

/** What a project charges. Precedence: the exact model, then "*", then the catalogue. */
export const pricingSchema = z.strictObject({
  catalogue: z.boolean().default(false),
  /** On catalogue prices only: a project's own prices are final. */
  markupPercent: decimal.default("0"),
  /** Due for each answer that produced output, in the project's currency. */
  requestFee: decimal.default("0"),
  models: z.record(z.string().min(1).max(256), modelPriceSchema).default({}),
});
/** What a project charges, as stored. */
export type Pricing = z.output<typeof pricingSchema>;

const httpUrl = z.string().max(2048).refine((text) => {
  const url = URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) && !url.username && !url.password;
}, { error: "must be an http or https address without credentials" });

// Placeholders stand behind the host: whoever is named in one must not choose where links lead.
const addressTemplate = z.string().max(2048).refine((text) => {
  const filled = text.replace(/\{(user|project|amount)\}/g, "x");
  return /^https?:\/\/[^/?#{}\\@]+([/?#]|$)/.test(text) && URL.canParse(filled);
}, {
  error: "must be an http or https address, with {user}, {project} and {amount} after its host",
});

const upstreamSchema = z.strictObject({
  url: httpUrl.refine((text) => !/[?#]/.test(text), { error: "must have no query or fragment" }),
  apiKey: z.string().min(1).max(1024).regex(/^[\x21-\x7e]+$/, {
    error: "must be visible ASCII characters",
  }).optional(),
  maxTokensField: z.enum(["max_tokens", "max_completion_tokens"]).optional(),
  onAbort: z.enum(["estimate", "drain"]).optional(),
});

const secretText = z.string().min(8).max(512).regex(/^[\x21-\x7e]+$/, {
  error: "must be visible ASCII characters",
});

const stripeSchema = z.strictObject({ secretKey: secretText, webhookSecret: secretText });

/** A project's own account at Stripe, as stored. */
export interface StripeKeys {
  secretKey: Sealed;
  webhookSecret: Sealed;
}

/** What the hosted page offers; amounts are decimal strings in the project's currency. */
const topUpSchema = z.strictObject({
  amounts: z.array(decimal).min(1).max(6).default(["5", "10", "25"]),
  min: decimal.default("1"),
  max: decimal.default("1000"),
  /** The owner's own checkout; else Stripe's, where its keys are set. */
  checkoutUrl: addressTemplate.nullable().default(null),
});

/** Where a project's chats go, as stored. */
export type Upstream = Omit<z.output<typeof upstreamSchema>, "apiKey"> & {
  apiKey: Sealed | null;
};

const count = z.int().min(1).max(1_000_000_000).nullable().default(null);
const rates = { requestsPerMinute: count, tokensPerMinute: count, concurrent: count };

/** What one user, and one key, may use; null is no limit. Spending in decimal strings, UTC. */
const limitsSchema = z.strictObject({
  user: z.strictObject({
    ...rates,
    spendPerDay: decimal.nullable().default(null),
    spendPerMonth: decimal.nullable().default(null),
  }).prefault({}),
  key: z.strictObject(rates).prefault({}),
  /** To whoever is too fast: 429, or an assistant message. */
  reply: z.enum(["error", "message"]).default("error"),
});
/** No limit at all. */
export const noLimits = limitsSchema.parse({});
/** What one user may use. */
export type UserLimits = z.output<typeof limitsSchema>["user"];
/** What one key may use. */
export type KeyLimits = z.output<typeof limitsSchema>["key"];

/** Why a user reads a message of the paywall. */
export const messageReasons = [
  "insufficient_funds",
  "authorization_required",
  "limit_reached",
  "spend_limit",
  "rate_limit",
  "busy",
  "cut",
  "low_balance",
] as const;
/** One of them. */
export type MessageReason = typeof messageReasons[number];

const messageTemplate = z.string().min(1).max(1_000).refine((text) => text.includes("{{url}}"), {
  error: "must contain {{url}}",
}).refine((text) => !/\{\{(?!(url|name|balance)\}\})/.test(text), {
  error: "knows only {{url}}, {{name}} and {{balance}}",
});

const currencies = new Set(Intl.supportedValuesOf("currency").map((code) => code.toLowerCase()));

const settings = {
  name: z.string().trim().min(1).max(128),
  ownerUserId: z.string().min(1).max(userIdCharsMax),
  pricing: pricingSchema,
  upstream: upstreamSchema.nullable(),
  topUpUrl: addressTemplate.nullable(),
  userSource: z.enum(["any", "header"]),
  maxOutputTokens: tokens,
  allowedFields: z.array(z.string().min(1).max(64)).max(32),
  billingEvents: z.boolean(),
  /** Its own words to its users, by lowercase language and reason. */
  messages: z.record(
    z.string().regex(/^[a-z]{2,3}(-[a-z0-9]{2,8})*$/, {
      error: "must be a lowercase language tag",
    }),
    z.partialRecord(z.enum(messageReasons), messageTemplate),
  ),
  topUp: topUpSchema,
  stripe: stripeSchema.nullable(),
  /** Given to each user once, with their first operation. */
  trialCredits: decimal,
  /** Below this balance an answer ends with a warning; null for none. */
  lowBalance: decimal.nullable(),
  limits: limitsSchema,
};

/** The body of `POST /v1/admin/projects`. */
export const createProjectSchema = z.strictObject({
  ...settings,
  ownerUserId: settings.ownerUserId.default("owner"),
  currency: z.string().refine((code) => currencies.has(code), {
    error: "must be a lowercase ISO 4217 code",
  }).default("usd"),
  mode: z.enum(["default", "shared"]).default("default"),
  pricing: settings.pricing.prefault({}),
  upstream: settings.upstream.default(null),
  topUpUrl: settings.topUpUrl.default(null),
  userSource: settings.userSource.default("any"),
  maxOutputTokens: settings.maxOutputTokens.default(16_384),
  allowedFields: settings.allowedFields.default([]),
  billingEvents: settings.billingEvents.default(true),
  messages: settings.messages.default({}),
  topUp: settings.topUp.prefault({}),
  stripe: settings.stripe.default(null),
  trialCredits: settings.trialCredits.default("0"),
  lowBalance: settings.lowBalance.default(null),
  limits: settings.limits.prefault({}),
});
/** What makes a project. */
export type CreateProject = z.output<typeof createProjectSchema>;

/** The body of `PATCH /v1/admin/projects/{id}`: what is given is replaced. */
export const updateProjectSchema = z.strictObject({
  ...settings,
  pricing: z.strictObject({
    catalogue: z.boolean(),
    markupPercent: decimal,
    requestFee: decimal,
    models: z.record(z.string().min(1).max(256), modelPriceSchema),
  }).partial(),
}).partial();
/** What changes a project. */
export type UpdateProject = z.output<typeof updateProjectSchema>;

/** The body of `POST /v1/admin/projects/{id}/keys`. */
export const createKeySchema = z.strictObject({
  name: z.string().max(128).default(""),
  scopes: z.array(z.enum(scopes)).min(1).default([...scopes]),
  defaultUser: z.string().min(1).max(userIdCharsMax).nullable().default(null),
  user: z.string().min(1).max(userIdCharsMax).nullable().default(null),
}).refine((key) => key.user === null || key.scopes.every((scope) => scope === "chat"), {
  path: ["user"],
  error: "binds only a key whose single scope is chat",
});
/** What makes an API key. */
export type CreateKey = z.output<typeof createKeySchema>;

/** A project: its settings and prices. One row; its version moves with every change below it. */
export interface Project extends Omit<CreateProject, "upstream" | "stripe"> {
  id: string;
  upstream: Upstream | null;
  stripe: StripeKeys | null;
  status: "active" | "archived";
  /** Who is told of its events. Kept by the webhooks room; never shown with the project. */
  listeners: Listener[];
  createdAt: string;
  updatedAt: string;
}

/** An API key's record. The key itself is nowhere: only its SHA-256, and its end for people. */
export interface ApiKey extends CreateKey {
  id: string;
  projectId: string;
  /** The last four characters, to tell keys apart. */
  suffix: string;
  createdAt: string;
  revokedAt: string | null;
}
