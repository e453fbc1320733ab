import { isObject, type JsonObject } from "../../../base/json.ts";
import {
  completionNames,
  firstCount,
  promptNames,
  readCache,
  totalNames,
} from "../../../pricing/usage_fields.ts";

/**
 * The usage of a response in chat's names. Everything else of it stays as it is: it decides the
 * price. Nothing is added that the upstream has not reported, such as zeros.
 */
export function usageFromResponse(usage: JsonObject): JsonObject {
  const prompt = firstCount(usage, promptNames);
  const completion = firstCount(usage, completionNames);
  // What is not whole, or is Anthropic's, reads the same by the names that it has.
  if (prompt === null || completion === null) return usage;
  const total = firstCount(usage, totalNames);
  if (total === null && readCache(usage).isAnthropic) return usage;
  const {
    input_tokens: _input,
    output_tokens: _output,
    input_tokens_details: promptDetails,
    output_tokens_details: completionDetails,
    ...rest
  } = usage;
  return {
    ...rest,
    prompt_tokens: prompt,
    completion_tokens: completion,
    ...(isObject(promptDetails) ? { prompt_tokens_details: promptDetails } : {}),
    ...(isObject(completionDetails) ? { completion_tokens_details: completionDetails } : {}),
    ...(total === null ? { total_tokens: prompt + completion } : {}),
  };
}
