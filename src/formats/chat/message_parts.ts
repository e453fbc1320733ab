import { isObject, type Json, type JsonObject } from "../../base/json.ts";

/** What the content of a message says, where a server sends it in parts. */
interface ContentParts {
  text: string;
  thinking: string;
  refusal: string;
  images: Json[];
}

/**
 * A message, or a delta of one, whose content is a text or null. Of parts, the texts are joined;
 * thinking goes to the field `thoughtsField`, refusals and images to fields of their own. Null for
 * content that is neither.
 */
export function withTextContent(message: JsonObject, thoughtsField: string): JsonObject | null {
  const { content: sent } = message;
  if (sent === undefined || sent === null || typeof sent === "string") return message;
  const { content, ...others } = message;
  const parts = isObject(content) ? [content] : content;
  if (!Array.isArray(parts)) return null;
  const { text, thinking, refusal, images } = readParts(parts);
  const isThought = text === "" && (thinking !== "" || refusal !== "");
  const added: JsonObject = { content: isThought ? null : text };
  if (thinking !== "" && !hasText(others[thoughtsField])) added[thoughtsField] = thinking;
  if (refusal !== "" && !hasText(others.refusal)) added.refusal = refusal;
  if (images.length > 0) {
    added.images = [...(Array.isArray(others.images) ? others.images : []), ...images];
  }
  return { ...others, ...added };
}

function readParts(parts: readonly Json[]): ContentParts {
  const read: ContentParts = { text: "", thinking: "", refusal: "", images: [] };
  for (const part of parts) {
    if (typeof part === "string") read.text += part;
    if (!isObject(part)) continue;
    if (part.type === "thinking") read.thinking += joinedText(part.thinking);
    else if (typeof part.type === "string" && part.type.includes("image")) read.images.push(part);
    else {
      read.text += joinedText(part.text);
      read.refusal += joinedText(part.refusal);
    }
  }
  return read;
}

/** A text, or those of parts: Mistral's thinking is parts within a part. */
function joinedText(value: Json | undefined): string {
  if (typeof value === "string") return value;
  if (!Array.isArray(value)) return "";
  return value.map((part) => isObject(part) ? joinedText(part.text) : joinedText(part)).join("");
}

function hasText(value: Json | undefined): boolean {
  return typeof value === "string" && value !== "";
}
