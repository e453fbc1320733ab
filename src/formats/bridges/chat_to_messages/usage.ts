import { isObject, type JsonObject } from "../../../base/json.ts";
import { readCache, readReasoning } from "../../../pricing/usage_fields.ts";

/**
 * Anthropic's `usage` as a chat response has it: the provider's own object, by which it is charged,
 * with the details that chat clients read. Their counts are those that the object has already, so
 * that it reads as before.
 */
export function toChatUsage(usage: JsonObject): JsonObject {
  const { prompt_tokens_details: prompt, input_tokens_details: input } = usage;
  const { completion_tokens_details: completion, output_tokens_details: output } = usage;
  const cache = readCache(usage);
  const reasoning = readReasoning(usage);
  const details: JsonObject = {};
  if (cache.isAnthropic && !isObject(prompt) && !isObject(input)) {
    details.prompt_tokens_details = {
      cached_tokens: cache.read,
      cache_write_tokens: cache.write,
    };
  }
  if (reasoning !== null && !isObject(completion)) {
    const more = isObject(output) ? output : {};
    details.completion_tokens_details = { ...more, reasoning_tokens: reasoning };
  }
  return { ...usage, ...details };
}
