import { z } from "zod";
import { errorSchema } from "../../base/errors.ts";
import { callHeaders } from "../../inference/api_doc.ts";
import type { CallDoc } from "../../inference/served_endpoint.ts";
import { headFields, paywallSchema, usageSchema } from "../openai/response_schema.ts";
import { completionRequestSchema } from "./request.ts";

const choiceFields = { index: z.int(), text: z.string() };

const textCompletionSchema = z.looseObject({
  ...headFields,
  object: z.string().meta({ description: "`text_completion`" }),
  choices: z.array(z.looseObject({ ...choiceFields, finish_reason: z.string() })),
  usage: usageSchema,
  paywall: paywallSchema,
}).meta({ id: "TextCompletion" });

const textChunkSchema = z.looseObject({
  ...headFields,
  object: z.string().meta({ description: "`text_completion`" }),
  choices: z.array(z.looseObject({ ...choiceFields, finish_reason: z.string().nullish() })),
  usage: usageSchema.nullish(),
  paywall: paywallSchema,
}).meta({ id: "TextCompletionChunk" });

const request = {
  model: "gpt-4o-mini",
  prompt: "Once upon",
  max_tokens: 7,
  user: "ada",
};
const head = {
  id: "cmpl-01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  object: "text_completion",
  created: 1_769_851_800,
  model: "gpt-4o-mini",
};
const choice = { text: " a time, there was", index: 0, logprobs: null };
const completed = {
  ...head,
  choices: [{ ...choice, finish_reason: "length" }],
  usage: {
    prompt_tokens: 2,
    completion_tokens: 7,
    total_tokens: 9,
    cost: 0.000017,
    cost_exact: "0.000017",
  },
};

/** The document of `POST /v1/completions`. */
export const completionsDoc: CallDoc = {
  operationId: "createCompletion",
  summary: "Create a completion",
  description:
    "OpenAI's legacy completions, for base models and fill-in-the-middle. The hold covers " +
    "`max_tokens` for each prompt and for the larger of `n` and `best_of`. When the user must top " +
    "up, the text is the message with the link.",
  body: {
    schema: completionRequestSchema,
    examples: { whole: request, streamed: { ...request, stream: true } },
  },
  answers: {
    200: {
      description: "The completion, or the paywall's message in its place.",
      content: {
        "application/json": { schema: textCompletionSchema, examples: { completed } },
        "text/event-stream": {
          schema: z.union([textChunkSchema, errorSchema]),
          examples: { chunk: { ...head, choices: [{ ...choice, finish_reason: null }] } },
        },
      },
      headers: callHeaders,
    },
  },
};
