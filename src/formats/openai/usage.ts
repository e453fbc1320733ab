import type { JsonObject } from "../../base/json.ts";
import { inputTokensOf, outputTokensOf } from "../../base/token_classes.ts";
import type { TokenUsage } from "../../pricing/usage.ts";

/** The usage of a response that no model produced. */
export const noUsage: JsonObject = {
  prompt_tokens: 0,
  completion_tokens: 0,
  total_tokens: 0,
  cost: "0",
};

/**
 * `usage` in OpenAI's shape: the upstream's own object, or our count over it where that is what was
 * charged; `cost` is a decimal string in currency units.
 */
export function openAiUsage(
  usage: TokenUsage,
  { reported, cost }: { reported: JsonObject | null; cost: string },
): JsonObject {
  if (usage.source === "provider" && reported) return { ...reported, cost };
  const input = inputTokensOf(usage);
  const output = outputTokensOf(usage);
  const counted = {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
  };
  return { ...reported, ...counted, cost };
}
