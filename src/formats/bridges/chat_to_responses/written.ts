import { isObject, type Json, type JsonObject, plainText } from "../../../base/json.ts";
import type { ModelRequest } from "../../../inference/model_request.ts";

/** Separates texts of several items where they become one. */
export const betweenItems = "\n\n";

/** Whether the caller reads the one call of a response as the message's own `function_call`. */
export function readsLegacyCalls({ body: { functions } }: ModelRequest): boolean {
  return Array.isArray(functions) && functions.length > 0;
}

/** The type of a tool's call by the type of its item. */
const callTypes = new Map<unknown, "function" | "custom">([
  ["function_call", "function"],
  ["custom_tool_call", "custom"],
]);

/** The place of what the model wrote in a call, by the type of the call. */
export const writtenPlaces = { function: "arguments", custom: "input" } as const;

/** The type of the call that an item is; null for other items. */
export function callTypeOf({ type }: JsonObject): "function" | "custom" | null {
  return callTypes.get(type) ?? null;
}

/** A call as chat has it, with this much of what the model wrote. */
export function toChatCall(item: JsonObject, text: string): JsonObject {
  const type = callTypeOf(item) ?? "function";
  const name = plainText(item.name);
  return {
    id: plainText(item.call_id),
    type,
    [type]: { name, [writtenPlaces[type]]: text },
  };
}

/** Why a response has ended, in chat's words. */
export function chatReasonOf(
  { status, incomplete_details: details }: JsonObject,
  { hasCalls, isLegacy }: { hasCalls: boolean; isLegacy: boolean },
): string {
  if (status === "incomplete") {
    const reason = isObject(details) ? details.reason : null;
    return reason === "content_filter" ? "content_filter" : "length";
  }
  if (!hasCalls) return "stop";
  return isLegacy ? "function_call" : "tool_calls";
}

/** The citations of a message's item, as chat has them. */
export function citationsIn({ content }: JsonObject): JsonObject[] {
  const parts = Array.isArray(content) ? content.filter(isObject) : [];
  return parts.flatMap(({ annotations }) => (Array.isArray(annotations) ? annotations : []))
    .filter(isObject).filter(({ type }) => type === "url_citation")
    .map(({ type = null, ...cited }) => ({ type, url_citation: cited }));
}

/** Log probabilities as a choice has them; null for none. */
export function logprobsOf(content: Json | undefined): JsonObject | null {
  return Array.isArray(content) && content.length > 0 ? { content, refusal: null } : null;
}
