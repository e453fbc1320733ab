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
  const input = firstCount(usage, promptNames);
  const output = firstCount(usage, completionNames);
  // What is not whole reads the same by the names that it has.
  if (input === null || output === null) return usage;
  const {
    prompt_tokens,
    completion_tokens: _,
    prompt_tokens_details: promptDetails,
    completion_tokens_details: completionDetails,
    ...rest
  } = usage;
  // Without a total, a count by the name `input_tokens` would be taken for Anthropic's.
  const lacksTotal = prompt_tokens !== undefined && firstCount(usage, totalNames) === null;
  return {
    ...rest,
    input_tokens: input,
    output_tokens: output,
    ...(isObject(promptDetails) ? { input_tokens_details: promptDetails } : {}),
    ...(isObject(completionDetails) ? { output_tokens_details: completionDetails } : {}),
    ...(lacksTotal ? { total_tokens: input + output } : {}),
  };
}
