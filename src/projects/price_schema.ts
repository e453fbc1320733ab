import { z } from "zod";
import { mapOptionalPriceFields, mapPriceFields } from "../base/token_classes.ts";
import { formatAmount, parseAmount } from "../base/money.ts";

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
const optional = mapOptionalPriceFields(({ description, priceElse }) =>
  perMillion(`${description} Default: the same as \`${priceElse}\`.`).optional()
);

/** A model's price and bounds; prices are decimal strings per million tokens. */
export const modelPriceSchema = z.strictObject({
  input,
  ...optional,
  output,
  maxOutputTokens: tokenCount.optional(),
  minOutputTokens: tokenCount.optional().meta({
    description:
      "With fewer affordable output tokens than this, the call gets the paywall. Default 16.",
  }),
  minStructuredOutputTokens: tokenCount.optional().meta({
    description: "The same for calls with tools, JSON formats and reasoning models. Default 1,024.",
  }),
  mediaTokens: z.record(z.string().max(64), tokenCount).optional().meta({
    description: "The most prompt tokens of one content part, by its type.",
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
    description: "Applies to catalogue prices only, in percent: a project's own prices are final.",
  }),
  requestFee: moneyDecimal("Charged for each response that produced output.").default("0"),
  models: z.record(z.string().min(1).max(256), modelPriceSchema).default({}).meta({
    description: "By the model's exact name; `*` for all others.",
  }),
}).meta({ id: "Pricing", description: "What a project charges." });
/** What a project charges, as stored. */
export type Pricing = z.output<typeof pricingSchema>;
