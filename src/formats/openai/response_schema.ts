import { z } from "zod";
import { publicRefusalReasons } from "../../base/refusal_reasons.ts";
import { decimal } from "../../base/fields.ts";

const count = z.int().min(0);
/** The usage of a response, and its cost. */
export const usageSchema = z.looseObject({
  prompt_tokens: count,
  completion_tokens: count,
  cost: z.number().min(0).meta({ description: "What was charged, in currency units." }),
  cost_exact: decimal.meta({ description: "The same as an exact decimal." }),
}).meta({ id: "ChatUsage", description: "What a response used, and what it cost." });

/** Marks a response that stands in place of the model's. */
export const paywallSchema = z.object({
  reason: z.enum(publicRefusalReasons),
  url: z.string().meta({ description: "The page where the user can continue." }),
  retryAfter: z.int().optional().meta({
    description: "With `balance_held`: after so many seconds the request may be repeated.",
  }),
}).optional().meta({
  description: "Present when the response stands in place of the model's: the user must act first.",
});

/** Fields that identify a response. */
export const headFields = {
  id: z.string(),
  created: z.int().meta({ description: "Seconds since 1970." }),
  model: z.string(),
};
