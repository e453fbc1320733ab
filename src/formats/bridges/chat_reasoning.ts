import type { JsonObject } from "../../base/json.ts";

/** Members of a chat message in which servers send reasoning, and get it back. */
export const reasoningFields = ["reasoning_content", "reasoning"] as const;

/**
 * Servers that want reasoning back want it with every message that has calls, be it empty: returns
 * the messages with the field in all of those, where one of the messages has it.
 */
export function withReasoningOfCalls(messages: JsonObject[]): JsonObject[] {
  const field = reasoningFields.find((name) => messages.some((message) => name in message));
  if (field === undefined) return messages;
  return messages.map((message) =>
    "tool_calls" in message && !reasoningFields.some((name) => name in message)
      ? { ...message, [field]: "" }
      : message
  );
}
