import { isObject, type JsonObject } from "../../base/json.ts";
import {
  inputTokensOf,
  outputTokensOf,
  type TokenCounts,
  tokenCounts,
} from "../../base/token_classes.ts";
import type { LastReport } from "../../inference/upstream_response.ts";
import type { TokenUsage } from "../../pricing/usage.ts";

/**
 * `usage` as responses have it: what was charged, by our reading of the upstream's report or by our
 * own count, with what else the report says. `cost` is a decimal string in currency units.
 */
export function responsesUsage(
  usage: TokenUsage,
  { reported, cost }: { reported: LastReport | null; cost: string },
): JsonObject {
  const {
    prompt_tokens: _prompt,
    prompt_tokens_details: _promptDetails,
    completion_tokens: _completion,
    completion_tokens_details: _completionDetails,
    tool_usage: _tools,
    ...own
  } = reported?.usage ?? {};
  const { input_tokens_details: input, output_tokens_details: output } = own;
  const counted = countedUsage(usage);
  return {
    ...own,
    ...counted,
    input_tokens_details: { ...(isObject(input) ? input : {}), ...inputDetails(usage) },
    output_tokens_details: { ...(isObject(output) ? output : {}), ...outputDetails(usage) },
    cost: Number(cost),
    cost_exact: cost,
  };
}

/** The usage of a response that no model produced. */
export const noResponsesUsage: JsonObject = responsesUsage(
  { ...tokenCounts({}), source: "provider" },
  { reported: null, cost: "0" },
);

function countedUsage(counts: TokenCounts): JsonObject {
  const input = inputTokensOf(counts);
  const output = outputTokensOf(counts);
  return { input_tokens: input, output_tokens: output, total_tokens: input + output };
}

function inputDetails(counts: TokenCounts): JsonObject {
  const { cachedInput, cachedAudioInput, cachedImageInput, cacheWrite, cacheWriteHour } = counts;
  return {
    cached_tokens: cachedInput + cachedAudioInput + cachedImageInput,
    cache_write_tokens: cacheWrite + cacheWriteHour,
  };
}

function outputDetails({ reasoning }: TokenCounts): JsonObject {
  return { reasoning_tokens: reasoning };
}
