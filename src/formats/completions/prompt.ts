import { isObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/format.ts";
import { promptsOf } from "./request.ts";

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
