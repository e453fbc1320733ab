import { z } from "zod";
import { modelName } from "../base/fields.ts";
import { mapPriceFields } from "../base/token_classes.ts";
import { formatAmount, parseAmount, unit } from "../base/money.ts";

const decimalWords =
  'must be a decimal string such as "0.15", with at most 12 digits before the point and 9 after it';

/** A decimal string, normalized to its shortest form. */
export const priceDecimal = z.string({ error: decimalWords }).transform((text, context) => {
  const amount = parseAmount(text);
  if (amount !== null) return formatAmount(amount);
  context.addIssue(decimalWords);
  return z.NEVER;
}).meta({ override: { type: "string", pattern: "^\\d{1,12}(\\.\\d{1,9})?$" } });
/** An amount in the project's currency. */
export const moneyDecimal = (description: string) =>
  priceDecimal.meta({ description: `${description} In currency units.` });
/** A price per million tokens. */
const perMillion = (description: string) =>
  priceDecimal.meta({ description: `${description} In currency units per million tokens.` });

/** A number of tokens. */
export const tokenCount = z.int().min(1, { error: "must be at least 1" })
  .max(10_000_000, { error: "must be at most 10,000,000" });

const { input, output } = mapPriceFields(({ description }) => perMillion(description));
const { input: _input, output: _output, ...optionalPrices } = mapPriceFields(
  ({ description, priceElse }) =>
    perMillion(`${description} Default: the same as \`${priceElse}\`.`).optional(),
);

const perRequest = moneyDecimal("Charged for each response that produced output.");
const toolCalls = z.record(
  z.string().regex(/^[a-z][a-z0-9_]{0,63}$/, { error: "must be a tool's name such as web_search" }),
  priceDecimal,
).meta({
  description: "For each call of a tool that runs at the provider, by the tool's name. In " +
    "currency units per call.",
  example: { web_search: "0.01" },
});

const imageName = /^(?:\*|[a-z][a-z0-9_-]{0,31}|(?:[a-z][a-z0-9_-]{0,31} )?\d{1,5}x\d{1,5})$/;

/** Prices of what is counted by the unit, beside tokens. */
const unitPrices = {
  images: z.record(
    z.string().regex(imageName, {
      error: "must be a size such as 1024x1024, a quality and a size such as hd 1024x1024, " +
        "a quality, or *",
    }),
    priceDecimal,
  ).optional().meta({
    description: "For each image that is made, by its quality and size: the most exact name " +
      "applies; `*` is every other image. In currency units per image.",
    example: { "1024x1024": "0.04", "hd 1024x1024": "0.08" },
  }),
  characters: priceDecimal.optional().meta({
    description: "Of text that is spoken, counted as Unicode code points. In currency units per " +
      "million characters.",
  }),
  audioMinutes: priceDecimal.optional().meta({
    description: "Of sound that is transcribed, counted in seconds. In currency units per minute.",
  }),
};

/** Prices that replace others under a condition. What they leave out stays as it is. */
const replacements = {
  input: input.optional(),
  ...optionalPrices,
  output: output.optional(),
  request: perRequest.optional(),
  toolCalls: toolCalls.optional(),
};

const factorWords = 'must be a decimal string such as "0.5", more than 0, with at most 4 decimals';
const factor = z.string({ error: factorWords }).transform((text, context) => {
  const amount = parseAmount(text);
  if (amount !== null && amount > 0n && amount % 100_000n === 0n && amount <= 1000n * unit) {
    return formatAmount(amount);
  }
  context.addIssue(factorWords);
  return z.NEVER;
}).meta({
  description: "Multiplies every token price that applies, after replacements.",
  override: { type: "string", pattern: "^\\d{1,4}(\\.\\d{1,4})?$" },
});

const tiersMax = 8;
const tiers = z.array(z.strictObject({
  above: z.int().min(1).max(100_000_000).meta({
    description: "The tier is for requests with more input tokens than this, as a whole.",
  }),
  ...replacements,
})).max(tiersMax).refine(
  (list) => list.every(({ above }, at) => at === 0 || above > (list[at - 1]?.above ?? 0)),
  { error: "must be in ascending order of 'above'" },
).meta({ description: "Prices of long prompts." });

const serviceTier = z.strictObject({
  factor: factor.optional(),
  ...replacements,
  tiers: tiers.optional(),
});

const timeOfDay = z.string().regex(/^([01]\d|2[0-3]):[0-5]\d$|^24:00$/, {
  error: "must be a time of day such as 16:30",
});
const weekdays = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"] as const;

const timeWindow = z.strictObject({
  from: timeOfDay,
  to: timeOfDay.meta({ description: "Up to this time; earlier than `from`: on the next day." }),
  days: z.array(z.enum(weekdays)).min(1).max(7).optional().meta({
    description: "The days on which the window begins. Default: every day.",
  }),
  timeZone: z.string().max(64).refine(isTimeZone, {
    error: "must be a time zone such as UTC or Asia/Shanghai",
  }).optional().meta({ description: "Default: UTC." }),
  factor: factor.optional(),
  ...replacements,
  tiers: tiers.optional(),
}).refine(({ from, to }) => from !== to, { path: ["to"], error: "must differ from 'from'" });

function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat("en", { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

/** What a model costs. */
const priceFields = {
  input,
  ...optionalPrices,
  output,
  request: perRequest.optional(),
  requestBySearchContext: z.strictObject({
    low: perRequest,
    medium: perRequest,
    high: perRequest,
  }).optional().meta({
    description: "In place of `request`: the price by the size of the search context.",
  }),
  toolCalls: toolCalls.optional(),
  ...unitPrices,
  tiers: tiers.optional(),
  serviceTiers: z.record(
    z.string().regex(/^[a-z][a-z0-9_-]{0,31}$/, { error: "must be a service tier such as flex" }),
    serviceTier,
  ).optional().meta({
    description: "Prices of responses that were served at another tier, by the tier's name.",
    example: { flex: { factor: "0.5" }, priority: { factor: "2" } },
  }),
  timeWindows: z.array(timeWindow).max(16).optional().meta({
    description: "Prices at some times of day; the first window that contains the time of the " +
      "request applies.",
  }),
  minimum: moneyDecimal("The least that a response with output costs.").optional(),
  markupPercent: priceDecimal.optional().meta({
    description: "Added to all of these prices, in percent.",
  }),
};

/** A price list's price of one model: what the catalogue has. */
export const listPriceSchema = z.strictObject(priceFields);
/** A price list's price of one model. */
export type ListPrice = z.output<typeof listPriceSchema>;

const priceFrom = z.enum(["list", "provider"]).meta({
  description: "`provider`: the cost that the provider states in `usage.cost`, with the markup; " +
    "the list's price where it states none.",
});

/** A model's price and bounds; prices are decimal strings, of tokens per million. */
export const modelPriceSchema = z.strictObject({
  ...priceFields,
  priceFrom: priceFrom.optional(),
  maxToolCalls: z.int().min(0).max(1_000).optional().meta({
    description: "Tool calls that a hold covers. Default: 10 where the request asks for such a " +
      "tool, else 0.",
  }),
  maxOutputTokens: tokenCount.optional(),
  minOutputTokens: tokenCount.optional().meta({
    description:
      "With fewer affordable output tokens than this, the call gets the paywall. Default 16.",
  }),
  minStructuredOutputTokens: tokenCount.optional().meta({
    description: "The same for calls with tools, JSON formats and reasoning models. Default 1,024.",
  }),
  mediaTokens: z.record(z.string().max(64), tokenCount).optional().meta({
    description: "The most prompt tokens of one content part, by its type, in place of what its " +
      "provider publishes.",
    example: { image_url: 1445 },
  }),
  reasoning: z.boolean().optional().meta({
    description:
      "Reasons in hidden tokens: an aborted stream is read to its end, to be charged exactly.",
  }),
  onAbort: z.enum(["estimate", "drain"]).optional().meta({
    description:
      "What an aborted stream costs: the estimate so far, or the whole response, read to its end.",
  }),
  displayName: z.string().min(1).max(128).optional(),
  description: z.string().max(512).optional(),
}).meta({ id: "ModelPrice", description: "A model's price and bounds." });
/** A model's price and bounds, as stored. */
export type ModelPrice = z.output<typeof modelPriceSchema>;

/** What a project charges. Precedence: the exact model, then "*", then the catalogue. */
export const pricingSchema = z.strictObject({
  catalogue: z.boolean().default(false).meta({
    description: "Serve models without a price of their own at catalogue prices.",
  }),
  markupPercent: priceDecimal.default("0").meta({
    description: "Added to catalogue prices, in percent. A project's own prices have their own.",
  }),
  priceFrom: priceFrom.default("list"),
  requestFee: moneyDecimal("Charged for each response that produced output.").default("0"),
  models: z.record(modelName, modelPriceSchema).default({}).meta({
    description: "By the model's exact name; `*` for all others.",
  }),
}).meta({ id: "Pricing", description: "What a project charges." });
/** The prices of a project, as stored. */
export type Pricing = z.output<typeof pricingSchema>;
