import { z } from "zod";
import { decimal } from "../../base/fields.ts";
import { paywallSchema } from "../openai/response_schema.ts";

// Servers add fields of their own to every part of a response; they are passed on unchanged.

const count = z.int().min(0);
const responsesUsageSchema = z.looseObject({
  input_tokens: count,
  input_tokens_details: z.looseObject({ cached_tokens: count, cache_write_tokens: count }),
  output_tokens: count,
  output_tokens_details: z.looseObject({ reasoning_tokens: count }),
  total_tokens: count,
  cost: z.number().min(0).meta({ description: "What was charged, in currency units." }),
  cost_exact: decimal.meta({ description: "The same as an exact decimal." }),
}).meta({ id: "ResponseUsage", description: "What a response used, and what it cost." });

const itemSchema = z.looseObject({
  type: z.string(),
  id: z.string().optional(),
}).meta({ id: "ResponseOutputItem", description: "A message, reasoning, or a call of a tool." });

/** A whole response, as OpenAI's. */
export const responseSchema = z.looseObject({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.number().meta({ description: "Seconds since 1970." }),
  model: z.string(),
  status: z.string().meta({ description: "`completed`, `incomplete` or `cancelled`" }),
  output: z.array(itemSchema),
  usage: responsesUsageSchema,
  paywall: paywallSchema,
}).meta({ id: "Response" });

/** The data of a stream's events. */
export const responseEventSchema = z.looseObject({
  type: z.string().meta({
    description: "`response.output_text.delta`, …, `response.completed`, or `error`",
  }),
  sequence_number: z.int().min(0).optional(),
}).meta({
  id: "ResponseEvent",
  description: "An event as OpenAI's. The last one has the response, with `usage` and its cost.",
});

/** The count of a request's tokens. */
export const inputTokensSchema = z.object({
  object: z.literal("response.input_tokens"),
  input_tokens: count,
}).meta({ id: "ResponseInputTokens" });
