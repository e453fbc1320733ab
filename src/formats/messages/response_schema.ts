import { z } from "zod";
import { decimal } from "../../base/fields.ts";
import { paywallSchema } from "../openai/response_schema.ts";

const count = z.int().min(0);

/** The usage of a message, and its cost. Its classes of input are disjoint. */
const messageUsageSchema = z.looseObject({
  input_tokens: count.meta({ description: "Neither read from the cache nor written to it." }),
  cache_creation_input_tokens: count.nullish(),
  cache_read_input_tokens: count.nullish(),
  output_tokens: count,
  cost: z.number().min(0).meta({ description: "What was charged, in currency units." }),
  cost_exact: decimal.meta({ description: "The same as an exact decimal." }),
}).meta({ id: "MessageUsage", description: "What a message used, and what it cost." });

/** A whole message, as Anthropic's. */
export const messageSchema = z.looseObject({
  id: z.string(),
  type: z.literal("message"),
  role: z.literal("assistant"),
  model: z.string(),
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string(),
  stop_sequence: z.string().nullable(),
  usage: messageUsageSchema,
  paywall: paywallSchema,
}).meta({ id: "Message" });

const messageError = z.object({
  type: z.string().meta({ description: "The kind of the error, in Anthropic's words." }),
  message: z.string().meta({ description: "For people. Names the field and what is wrong." }),
  code: z.string().nullable().meta({ description: "For programs: what happened." }),
  param: z.string().nullable().meta({ description: "The invalid field." }),
  details: z.object({
    error_code: z.string(),
    unsupported: z.array(z.string()),
  }).optional().meta({ description: "For `thread`, without which clients then go on." }),
});

/** The body of an error, as Anthropic's. */
export const messageErrorSchema = z.object({
  type: z.literal("error"),
  error: messageError,
  request_id: z.string().optional().meta({ description: "As the header `request-id`." }),
}).meta({ id: "MessageError", description: "The body of every error of these endpoints." });

/** The data of an event of a stream. */
export const messageEventSchema = z.looseObject({
  type: z.string().meta({
    description: "`message_start`, `content_block_start`, `content_block_delta`, " +
      "`content_block_stop`, `message_delta` with the usage and the cost, `message_stop`, `ping`, " +
      "or `error`.",
  }),
}).meta({ id: "MessageEvent" });

/** A count of tokens. */
export const tokenCountSchema = z.object({ input_tokens: count }).meta({ id: "TokenCount" });
