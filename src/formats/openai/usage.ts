import { isObject, type JsonObject } from "../../base/json.ts";
import { inputTokensOf, outputTokensOf } from "../../base/token_classes.ts";
import type { ServedBy } from "../../inference/upstream_response.ts";
import type { LastReport } from "../../inference/upstream_response.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import { tierName } from "../../pricing/usage_fields.ts";

/** The usage of a response that no model produced. */
export const noUsage: JsonObject = {
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  cost: 0,
  cost_exact: "0",
};

/**
 * `usage` in OpenAI's shape: the upstream's own object where it is what was charged, else with our
 * counts in it. `cost` is a decimal string in currency units: the caller gets a number, as
 * OpenRouter's clients expect, and the exact decimal beside it.
 */
export function openAiUsage(
  usage: TokenUsage,
  { reported, cost }: { reported: LastReport | null; cost: string },
): JsonObject {
  const input = inputTokensOf(usage);
  const output = outputTokensOf(usage);
  const charged = { cost: Number(cost), cost_exact: cost };
  const counted = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
  };
  if (usage.source === "provider" && reported?.isWhole) {
    return { ...counted, ...reported.usage, ...charged };
  }
  return { ...reported?.usage, ...counted, ...charged };
}

/**
 * The usage object of a body or a chunk. Besides `usage`, servers put it into `x_groq`, into
 * `usageMetadata`, into `meta` (Cohere), or into a choice.
 */
export function usageIn(body: JsonObject): JsonObject | undefined {
  if (isObject(body.usage)) return body.usage;
  if (isObject(body.x_groq) && isObject(body.x_groq.usage)) return body.x_groq.usage;
  const gemini = body.usageMetadata ?? body.usage_metadata;
  if (isObject(gemini)) return gemini;
  if (isObject(body.meta) && isObject(body.meta.billed_units)) return body.meta;
  if (!Array.isArray(body.choices)) return undefined;
  for (const choice of body.choices) {
    if (isObject(choice) && isObject(choice.usage)) return choice.usage;
  }
  return undefined;
}

/** The model and the service tier that a body or a chunk names; null where it names none. */
export function servedBy({ model, service_tier: tier }: JsonObject): ServedBy {
  return {
    model: typeof model === "string" && model !== "" ? model : null,
    tier: tierName(tier),
  };
}

/** A body, a chunk or a choice without any usage object, so that the caller sees only ours. */
export function withoutUsage(body: JsonObject): JsonObject {
  const { usage: _own, usageMetadata: _google, usage_metadata: _python, ...rest } = body;
  if (!isObject(rest.x_groq) || !("usage" in rest.x_groq)) return rest;
  const { usage: _groq, ...more } = rest.x_groq;
  return { ...rest, x_groq: more };
}
