import { isObject, type JsonObject } from "../../base/json.ts";

/** Reasons by which servers say that a model has ended a choice itself. */
const ownEnds = new Set<unknown>([
  ...["stop", "STOP", "eos", "eos_token", "end_turn", "stop_sequence"],
  ...["tool_calls", "function_call"],
]);

/** Words of a provider's own reason, where a router passes it on beside `stop`. */
const blockedWords = /refus|safety|filter|block|prohibited|recitation|spii/i;

/** Whether a model has ended a choice itself: no bound, no filter and no error has. */
export function isEndedByModel(choice: JsonObject): boolean {
  return ownEnds.has(choice.finish_reason) && !choice.error && !isBlocked(choice);
}

/**
 * Whether a provider has blocked a choice: by its reason, which Google's endpoint extends
 * (`content_filter: SAFETY`), by the provider's own reason, or by a filter's result.
 */
export function isBlocked(choice: JsonObject): boolean {
  const { finish_reason: reason, native_finish_reason: native } = choice;
  if (typeof reason === "string" && reason.startsWith("content_filter")) return true;
  if (typeof native === "string" && blockedWords.test(native)) return true;
  const { content_filter_results: filters } = choice;
  return isObject(filters) &&
    Object.values(filters).some((filter) => isObject(filter) && filter.filtered === true);
}
