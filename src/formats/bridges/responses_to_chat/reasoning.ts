import { type Json, parseJson } from "../../../base/json.ts";
import { reasoningFields } from "../chat_reasoning.ts";

/** The reasoning of a model, and the member of the message in which its server sent it. */
export interface ChatReasoning {
  /** Null where the server could not take it back. */
  field: typeof reasoningFields[number] | null;
  text: string;
  /** Thinking that its provider has signed, and takes back as it is; absent where there is none. */
  blocks?: readonly Json[];
}

const mark = "chat.";
const blocksMark = "chat.thinking_blocks:";

/**
 * Reasoning as the `encrypted_content` of its item, which every client sends back. It is readable;
 * the mark tells it from other servers' content. Null where it cannot be carried back.
 */
export function packReasoning({ field, text, blocks = [] }: ChatReasoning): string | null {
  if (blocks.length > 0) return `${blocksMark}${JSON.stringify(blocks)}`;
  return field && `${mark}${field}:${text}`;
}

/** Reads what `packReasoning` wrote; null for anything else. */
export function unpackReasoning(content: Json | undefined): ChatReasoning | null {
  if (typeof content !== "string") return null;
  if (content.startsWith(blocksMark)) return readBlocks(content.slice(blocksMark.length));
  for (const field of reasoningFields) {
    const start = `${mark}${field}:`;
    if (content.startsWith(start)) return { field, text: content.slice(start.length) };
  }
  return null;
}

/** Signed thinking; null for what a caller has changed so that it is no list. */
function readBlocks(text: string): ChatReasoning | null {
  try {
    const blocks = parseJson(text);
    return Array.isArray(blocks) ? { field: null, text: "", blocks } : null;
  } catch {
    return null;
  }
}
