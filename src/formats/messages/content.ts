import { memoizeByObject } from "../../base/memoize_by_object.ts";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";

/** A content block of a request. */
interface PlacedBlock {
  block: JsonObject;
  /** Name of the field that holds it, for errors. */
  param: string;
  /** Whether the content is within an image or a document, whose size covers it. */
  isWithinMedia: boolean;
}

/** Whether a block is an image or a document. */
export function isMedia({ type, source }: JsonObject): boolean {
  return (type === "image" || type === "document") && source !== undefined;
}

/**
 * Every content block of the system prompt and the messages, also those within other blocks: in
 * results of tools, in pages that were fetched, and in documents.
 */
export const blocksOf = memoizeByObject(findBlocks);

function findBlocks({ system, messages }: JsonObject): readonly PlacedBlock[] {
  const found: PlacedBlock[] = [];
  addBlocks(found, system, { param: "system", isWithinMedia: false });
  for (const [index, message] of messagesIn(messages).entries()) {
    const param = `messages.${index}.content`;
    addBlocks(found, message.content, { param, isWithinMedia: false });
  }
  return found;
}

type Place = Omit<PlacedBlock, "block">;

/** Adds blocks, and what is within them. Without recursion, which a hostile body could misuse. */
function addBlocks(found: PlacedBlock[], content: Json | undefined, place: Place): void {
  let next = found.length;
  addDirect(found, content, place);
  for (; next < found.length; next++) {
    const placed = found[next];
    if (!placed) continue;
    const { block, param } = placed;
    const isWithinMedia = placed.isWithinMedia || isMedia(block);
    addDirect(found, block.content, { param, isWithinMedia });
    if (isObject(block.source)) addDirect(found, block.source.content, { param, isWithinMedia });
  }
}

function addDirect(found: PlacedBlock[], content: Json | undefined, place: Place): void {
  if (isObject(content)) found.push({ block: content, ...place });
  if (!Array.isArray(content)) return;
  for (const block of content) if (isObject(block)) found.push({ block, ...place });
}

/** The messages of a body that are objects. */
export function messagesIn(messages: Json | undefined): JsonObject[] {
  return Array.isArray(messages) ? messages.filter(isObject) : [];
}

/** Every string in a value. */
export function stringsIn(value: Json | undefined, found: string[] = []): string[] {
  if (typeof value === "string") found.push(value);
  else if (Array.isArray(value)) { for (const item of value) stringsIn(item, found); }
  else if (isObject(value)) { for (const member of Object.values(value)) stringsIn(member, found); }
  return found;
}
