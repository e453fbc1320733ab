import { z } from "zod";
import { errorSchema } from "../../base/errors.ts";
import { decimal } from "../../base/fields.ts";

// Servers add fields of their own to every part of an answer; they come through as they are.

const count = z.int().min(0);
const usageSchema = z.looseObject({
  prompt_tokens: count,
  completion_tokens: count,
  cost: decimal.meta({ description: "What was charged, in currency units." }),
}).meta({ id: "ChatUsage", description: "What an answer used, and what it cost." });

const paywallSchema = z.object({
  reason: z.enum(["insufficient_funds", "authorization_required", "limit_reached"]),
  url: z.string().meta({ description: "Where the user goes to go on." }),
}).optional().meta({
  description: "There when the answer is not the model's: the user must act first.",
});

const head = {
  id: z.string(),
  created: z.int().meta({ description: "Seconds since 1970." }),
  model: z.string(),
};

const content = z.union([z.string(), z.array(z.unknown())]).nullish();
const messageSchema = z.looseObject({
  role: z.string(),
  content,
}).meta({ description: "The assistant's message." });

/** A whole answer, as OpenAI's. */
export const completionSchema = z.looseObject({
  ...head,
  object: z.string().meta({ description: "`chat.completion`" }),
  choices: z.array(z.looseObject({
    index: z.int(),
    message: messageSchema,
    finish_reason: z.string(),
  })),
  usage: usageSchema,
  paywall: paywallSchema,
}).meta({ id: "ChatCompletion" });

/** One event of a streamed answer, as OpenAI's. */
export const chunkSchema = z.looseObject({
  ...head,
  object: z.string().meta({ description: "`chat.completion.chunk`" }),
  choices: z.array(z.looseObject({
    index: z.int(),
    delta: z.looseObject({ content }),
    finish_reason: z.string().nullish(),
  })),
  usage: usageSchema.nullish().meta({
    description: "In the last chunk, which has no choices, where `include_usage` asked for it.",
  }),
  paywall: paywallSchema,
}).meta({ id: "ChatCompletionChunk" });

/** What a stream's events hold, but for the last, which is `[DONE]`. */
export const streamSchema = z.union([chunkSchema, errorSchema]);
