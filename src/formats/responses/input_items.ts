import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import { keptConversationBytesMax } from "../../base/limits.ts";
import { badRequest } from "../../base/errors.ts";
import { utf8Length } from "../../base/utf8.ts";
import type { KeptItems, KeptReference, ModelRequest } from "../../inference/model_request.ts";

/** The items of a validated body; a text has none. */
export function inputItems({ input }: JsonObject): JsonObject[] {
  return Array.isArray(input) ? input.filter(isObject) : [];
}

/** Content parts that are text, whose bytes bound their tokens. */
const textParts = new Set<unknown>([
  ...["input_text", "output_text", "text", "refusal", "reasoning_text", "summary_text"],
  ...["thinking", "logs", "encrypted_content"],
]);

/** Whether a content part is an image, a sound or a file. Objects without a type are text. */
export function isMediaPart({ type }: JsonObject): boolean {
  return typeof type === "string" && !textParts.has(type);
}

/** The members of an item that have content parts. */
const partFields = ["content", "output"] as const;

/** A content part of an item, and the member that has it. */
interface ItemPart {
  field: string;
  part: JsonObject;
}

const noParts: readonly ItemPart[] = [];

/** The content parts of an item. */
export function partsOf(item: JsonObject): readonly ItemPart[] {
  let found = noParts;
  for (const field of partFields) {
    const value = item[field];
    // A screenshot stands alone.
    const parts = Array.isArray(value) ? value : isObject(value) ? [value] : [];
    const added = parts.filter(isObject).map((part) => ({ field, part }));
    if (added.length > 0) found = [...found, ...added];
  }
  return found;
}

/**
 * The references of a request: the response before it, and items that the upstream has to look up.
 * Items that are sent whole may have an id too.
 */
export function referencesIn({ body }: ModelRequest): KeptReference[] {
  const references: KeptReference[] = [];
  const { previous_response_id: previous, prompt_cache_options: options } = body;
  if (typeof previous === "string" && previous !== "") {
    references.push({ kind: "response", id: previous, param: "previous_response_id" });
  }
  const compared = isObject(options) ? options.comparison_response_id : null;
  if (typeof compared === "string") {
    const param = "prompt_cache_options.comparison_response_id";
    references.push({ kind: "response", id: compared, param });
  }
  for (const [index, item] of inputItems(body).entries()) {
    if (typeof item.id !== "string" || !isReference(item)) continue;
    references.push({ kind: "item", id: item.id, param: `input.${index}.id` });
  }
  return references;
}

/** The input as items: a text is a message of the user's. */
export function itemsOfInput({ body: { input } }: ModelRequest): readonly Json[] {
  if (Array.isArray(input)) return input;
  return typeof input === "string" ? [{ type: "message", role: "user", content: input }] : [];
}

/**
 * The request with the conversation before it, and with items in place of references to them.
 * Throws 400 where the items are larger than what is kept of a conversation.
 */
export function withKeptItems(
  request: ModelRequest,
  { history, historyBytes, items }: KeptItems,
): ModelRequest {
  // Only what is added: the rest may have been longer as it was sent.
  let added = historyBytes;
  const own = itemsOfInput(request).map((item, index) => {
    const kept = isObject(item) && isReference(item) && typeof item.id === "string"
      ? items.get(item.id)
      : undefined;
    if (kept === undefined) return item;
    // An item may stand there more than once.
    added += utf8Length(JSON.stringify(kept));
    if (added - historyBytes > keptConversationBytesMax) throw tooLargeItems(index);
    return kept;
  });
  const input = [...history, ...own];
  const { previous_response_id: previous, ...rest } = request.body;
  const isContinued = history.length === 0 && previous !== undefined;
  const body = { ...rest, ...(isContinued ? { previous_response_id: previous } : {}), input };
  const continues = history.length > 0 && typeof previous === "string"
    ? { continues: previous }
    : {};
  return { ...request, ...continues, body, bytes: request.bytes + added };
}

function tooLargeItems(index: number) {
  return badRequest(
    `input.${index}.id`,
    `The items that 'input' refers to have more than ${keptConversationBytesMax} bytes.`,
    "context_length_exceeded",
  );
}

/** Members that say nothing about what an item contains. */
const bareMembers = new Set(["type", "id", "status", "role"]);

function isReference(item: JsonObject): boolean {
  const { type, encrypted_content: encrypted, content, result } = item;
  if (type === "item_reference") return true;
  if (type === "reasoning") return !encrypted && !hasItems(content);
  if (type === "image_generation_call") return typeof result !== "string" || result === "";
  for (const name in item) {
    const value = item[name];
    if (!bareMembers.has(name) && value !== null && value !== undefined) return false;
  }
  return true;
}

function hasItems(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length > 0;
}
