import { z } from "zod";
import { decimal } from "../../base/fields.ts";

const count = z.int().min(0);
/** What a response used, and what it cost. */
export const usageSchema = z.looseObject({
  prompt_tokens: count,
  completion_tokens: count,
  cost: z.number().min(0).meta({ description: "What was charged, in currency units." }),
  cost_exact: decimal.meta({ description: "The same as an exact decimal." }),
}).meta({ id: "ChatUsage", description: "What a response used, and what it cost." });

/** Marks a response that stands in place of the model's. */
export const paywallSchema = z.object({
  reason: z.enum(["insufficient_funds", "authorization_required", "limit_reached"]),
  url: z.string().meta({ description: "The page where the user can continue." }),
}).optional().meta({
  description: "Present when the response stands in place of the model's: the user must act first.",
});

/** Fields that identify a response. */
export const headFields = {
  id: z.string(),
  created: z.int().meta({ description: "Seconds since 1970." }),
  model: z.string(),
};
