import { userIn } from "../../base/user_id.ts";
import { z } from "zod";
import { badRequest } from "../../base/errors.ts";
import { modelName, userField } from "../../base/fields.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { choicesMax } from "../../base/limits.ts";
import { parseWith } from "../../base/request.ts";
import type { FieldPolicy, ModelRequest } from "../../inference/model_request.ts";
import { readExtras, requiresJsonElsewhere } from "../openai/extras.ts";
import { requireExactNames } from "../openai/fields.ts";
import { inputsIn, isListOfTokens, isTokenIds } from "../openai/token_ids.ts";
import { requireKnownCompletionFields } from "../openai/known_fields.ts";
import { requireNoStoredFields } from "../openai/stored_things.ts";

/** Output tokens where the caller names no bound, as OpenAI's reference has it. */
const defaultMaxTokens = 16;
/** Prompts of one request. */
const promptsMax = 2_048;

/** Zero writes nothing, such as for the log probabilities of a prompt. */
const count = z.int({ error: "must be a whole number" }).min(0, { error: "must be at least 0" });
const promptSchema = z.union([
  z.string(),
  z.array(z.string()),
  z.array(z.int().min(0)),
  z.array(z.array(z.int().min(0))),
]).nullish().meta({ description: "Text, token ids, or a list of either." });

/** A legacy completion. Only fields that the price depends on are checked. */
export const completionRequestSchema = z.looseObject({
  model: modelName,
  prompt: promptSchema,
  user: userField,
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  max_tokens: count.nullish().meta({
    description: `Most output tokens: ${defaultMaxTokens} where it is absent.`,
  }),
  n: z.int().min(1).max(choicesMax).nullish().meta({ description: "Responses for each prompt." }),
  best_of: z.int().min(1).max(choicesMax).nullish().meta({
    description: "Responses that are generated, and charged, for each prompt.",
  }),
  echo: z.boolean().nullish(),
}).meta({ id: "CompletionRequest" });

// A union over long lists of numbers is slow and keeps an error for each: only its kind is checked.
const checkedSchema = completionRequestSchema.extend({
  prompt: z.custom<Json>(isPrompt, {
    error: "must be a string, an array of strings, an array of token ids, or an array of those",
  }).nullish(),
});
const fieldNames = Object.keys(completionRequestSchema.shape);

/**
 * Reads a legacy completion request. Throws 400 for a malformed one, and for fields that the policy
 * refuses.
 */
export function readCompletionRequest(
  body: JsonObject,
  { bytes, fields }: { bytes: number; fields: FieldPolicy },
): ModelRequest {
  requireExactNames(body, fieldNames);
  const request = parseWith(checkedSchema, body);
  requireKnownCompletionFields(body, fields);
  requireNoStoredFields(body, fields.allowed);
  const prompts = promptsOf(body).length;
  if (prompts > promptsMax) {
    throw badRequest("prompt", `'prompt' has ${prompts} prompts. The most is ${promptsMax}.`);
  }
  const maxTokens = request.max_tokens ?? defaultMaxTokens;
  const generated = Math.max(request.n ?? 1, request.best_of ?? 1);
  return {
    model: request.model,
    stream: request.stream ?? false,
    wantsUsage: request.stream_options?.include_usage ?? false,
    choices: generated * Math.max(1, prompts),
    maxTokens,
    structured: false,
    requiresJson: requiresJsonElsewhere(body),
    asksReasoning: false,
    thinkingBudget: null,
    extras: readExtras(body),
    user: userIn(body),
    body,
    bytes,
  };
}

/** The prompts of a valid request: texts, or lists of token ids. */
export function promptsOf({ prompt }: JsonObject): (string | Json[])[] {
  return inputsIn(prompt);
}

function isPrompt(value: unknown): boolean {
  if (typeof value === "string") return true;
  if (!Array.isArray(value)) return false;
  return value.every((item) => typeof item === "string") || isTokenIds(value) ||
    isListOfTokens(value);
}

/** The prompts that are text, and what else a model reads: a suffix, a grammar, a JSON schema. */
export function* completionPromptTexts({ body }: ModelRequest): Generator<string> {
  for (const prompt of promptsOf(body)) if (typeof prompt === "string") yield prompt;
  for (const [name, value] of Object.entries(body)) {
    const mayBePrompt = typeof value === "string" || isObject(value) || Array.isArray(value);
    if (mayBePrompt && !outsidePrompt.has(name)) yield JSON.stringify(value);
  }
}

/** Token ids count as they are; a text prompt may get one token that opens it. */
export function completionTemplateTokens({ body }: ModelRequest): number {
  const prompts = promptsOf(body);
  return prompts.reduce(
    (sum, prompt) => sum + (typeof prompt === "string" ? 1 : prompt.length),
    0,
  );
}

/** Fields that no model reads; prompts are counted on their own. */
const outsidePrompt = new Set(
  "prompt model user stream_options metadata stop logit_bias service_tier".split(" "),
);
