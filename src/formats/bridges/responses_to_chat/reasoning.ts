import type { Json } from "../../../base/json.ts";
import { reasoningFields } from "../chat_reasoning.ts";

/** The reasoning of a model, and the member of the message in which its server sent it. */
export interface ChatReasoning {
  /** Null where the server could not take it back. */
  field: typeof reasoningFields[number] | null;
  text: string;
}

const mark = "chat.";

/**
 * Reasoning as the `encrypted_content` of its item, which every client sends back. It is readable;
 * the mark tells it from other servers' content. Null where it cannot be carried back.
 */
export function packReasoning({ field, text }: ChatReasoning): string | null {
  return field && `${mark}${field}:${text}`;
}

/** Reads what `packReasoning` wrote; null for anything else. */
export function unpackReasoning(content: Json | undefined): ChatReasoning | null {
  if (typeof content !== "string") return null;
  for (const field of reasoningFields) {
    const start = `${mark}${field}:`;
    if (content.startsWith(start)) return { field, text: content.slice(start.length) };
  }
  return null;
}
