import { z } from "zod";
import { errorSchema } from "../../base/errors.ts";
import { headFields, paywallSchema, usageSchema } from "../openai/response_schema.ts";

// Servers add fields of their own to every part of a response; they are passed on unchanged.

const content = z.union([z.string(), z.array(z.unknown())]).nullish();
const messageSchema = z.looseObject({
  role: z.string(),
  content,
}).meta({ description: "The assistant's message." });

/** A whole response, as OpenAI's. */
export const completionSchema = z.looseObject({
  ...headFields,
  object: z.string().meta({ description: "`chat.completion`" }),
  choices: z.array(z.looseObject({
    index: z.int(),
    message: messageSchema,
    finish_reason: z.string(),
  })),
  usage: usageSchema,
  paywall: paywallSchema,
}).meta({ id: "ChatCompletion" });

/** One event of a streamed response, as OpenAI's. */
const chunkSchema = z.looseObject({
  ...headFields,
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

/** The data of a stream's events, except the last, which is `[DONE]`. */
export const streamSchema = z.union([chunkSchema, errorSchema]);
