import { isObject, type JsonObject } from "../../../base/json.ts";
import {
  completionNames,
  firstCount,
  promptNames,
  totalNames,
} from "../../../pricing/usage_fields.ts";

/**
 * An upstream's usage in the names of `/responses`. Everything else of it stays as it is: it
 * decides the price. Nothing is added that the upstream has not reported, such as zeros.
 */
export function usageFromChat(usage: JsonObject): JsonObject {
  const {
    prompt_tokens,
    completion_tokens: _,
    prompt_tokens_details: promptDetails,
    completion_tokens_details: completionDetails,
    ...rest
  } = usage;
  const input = firstCount(usage, promptNames);
  const output = firstCount(usage, completionNames);
  // Without a total, a count by the name `input_tokens` would be taken for Anthropic's.
  const lacksTotal = prompt_tokens !== undefined && firstCount(usage, totalNames) === null;
  return {
    ...rest,
    ...(input === null ? {} : { input_tokens: input }),
    ...(output === null ? {} : { output_tokens: output }),
    ...(isObject(promptDetails) ? { input_tokens_details: promptDetails } : {}),
    ...(isObject(completionDetails) ? { output_tokens_details: completionDetails } : {}),
    ...(lacksTotal && input !== null && output !== null ? { total_tokens: input + output } : {}),
  };
}

/** Returns the report with more tokens of two of one response: usage never shrinks. */
export function largerUsage(before: JsonObject | null, next: JsonObject): JsonObject {
  return before && tokensIn(before) > tokensIn(next) ? before : next;
}

function tokensIn(usage: JsonObject): number {
  return (firstCount(usage, promptNames) ?? 0) + (firstCount(usage, completionNames) ?? 0);
}
