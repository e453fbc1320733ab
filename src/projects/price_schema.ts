import { z } from "zod";
import { mapOptionalPriceFields, mapPriceFields } from "../base/token_classes.ts";
import { formatAmount, parseAmount } from "../base/money.ts";

const decimalWords =
  'must be a decimal string such as "0.15", with at most 12 digits before the point and 9 behind it';

/** A decimal string, in its shortest form once it is read. */
export const priceDecimal = z.string({ error: decimalWords }).transform((text, context) => {
  const amount = parseAmount(text);
  if (amount !== null) return formatAmount(amount);
  context.addIssue(decimalWords);
  return z.NEVER;
}).meta({ override: { type: "string", pattern: "^\\d{1,12}(\\.\\d{1,9})?$" } });
/** An amount of the project's currency. */
export const moneyDecimal = (description: string) =>
  priceDecimal.meta({ description: `${description} In currency units.` });
/** A price. */
const perMillion = (description: string) =>
  priceDecimal.meta({ description: `${description} In currency units per million tokens.` });

/** A number of tokens. */
export const tokenCount = z.int().min(1, { error: "must be at least 1" })
  .max(10_000_000, { error: "must be at most 10,000,000" });

const { input, output } = mapPriceFields(({ description }) => perMillion(description));
const optional = mapOptionalPriceFields(({ description, priceElse }) =>
  perMillion(`${description} Absent: as \`${priceElse}\`.`).optional()
);

/** A model's price and bounds; prices are decimal strings per million tokens. */
export const modelPriceSchema = z.strictObject({
  input,
  ...optional,
  output,
  maxOutputTokens: tokenCount.optional(),
  minOutputTokens: tokenCount.optional().meta({
    description: "Fewer affordable output tokens than this is the paywall. Default 16.",
  }),
  minStructuredOutputTokens: tokenCount.optional().meta({
    description: "The same with tools, JSON formats and reasoning models. Default 1,024.",
  }),
  mediaTokens: z.record(z.string().max(64), tokenCount).optional().meta({
    description: "Most prompt tokens of one content part, by its type.",
    example: { image_url: 1445 },
  }),
  reasoning: z.boolean().optional().meta({
    description: "Thinks in hidden tokens: an aborted stream is drained, to be charged exactly.",
  }),
  onAbort: z.enum(["estimate", "drain"]).optional().meta({
    description: "What an aborted stream costs: the estimate so far, or the whole answer, drained.",
  }),
  displayName: z.string().min(1).max(128).optional(),
  description: z.string().max(512).optional(),
}).meta({ id: "ModelPrice", description: "A model's price and bounds." });
/** A model's price and bounds, as stored. */
export type ModelPrice = z.output<typeof modelPriceSchema>;

/** What a project charges. Precedence: the exact model, then "*", then the catalogue. */
export const pricingSchema = z.strictObject({
  catalogue: z.boolean().default(false).meta({
    description: "Serve models without a price of their own at the catalogue's price.",
  }),
  markupPercent: priceDecimal.default("0").meta({
    description: "On catalogue prices only, in percent: a project's own prices are final.",
  }),
  requestFee: moneyDecimal("Due for each answer that produced output.").default("0"),
  models: z.record(z.string().min(1).max(256), modelPriceSchema).default({}).meta({
    description: "By the model's exact name; `*` stands for all others.",
  }),
}).meta({ id: "Pricing", description: "What a project charges." });
/** What a project charges, as stored. */
export type Pricing = z.output<typeof pricingSchema>;
