import { isObject, type Json, type JsonObject } from "../../base/json.ts";

/** The blocks of a response's content that are objects with a type. A text counts as one block. */
export function responseBlocks(content: Json | undefined): JsonObject[] | null {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return null;
  const blocks = content.filter(isObject);
  const isValid = blocks.length === content.length &&
    blocks.every(({ type }) => typeof type === "string");
  return isValid ? blocks : null;
}

/**
 * Yields the texts that the model wrote in a block: text, thinking, the name and the input of a
 * tool. Results of tools are not the model's output; signatures and encrypted thinking say nothing
 * about tokens.
 */
export function* blockTexts(block: JsonObject): Generator<string> {
  const { type, text, thinking, name, input, content } = block;
  if (typeof type === "string" && type.endsWith("_tool_result")) return;
  for (const written of [text, thinking, name, type === "compaction" ? content : null]) {
    if (typeof written === "string") yield written;
  }
  if (typeof input === "string") yield input;
  else if (isObject(input) && Object.keys(input).length > 0) yield JSON.stringify(input);
}

/** Members of a delta that the model did not write. */
const silent = new Set(["type", "signature", "citation", "encrypted_content"]);

/** Yields the texts that the model wrote in a delta of a block. */
export function* deltaTexts(delta: JsonObject): Generator<string> {
  for (const name in delta) {
    const value = delta[name];
    if (typeof value === "string" && !silent.has(name)) yield value;
  }
}

/** A block as the events of a stream. */
export function* blockEvents(block: JsonObject, index: number): Generator<JsonObject> {
  const { start, deltas } = inPieces(block);
  yield { type: "content_block_start", index, content_block: start };
  for (const delta of deltas) yield { type: "content_block_delta", index, delta };
  yield { type: "content_block_stop", index };
}

function inPieces(block: JsonObject): { start: JsonObject; deltas: JsonObject[] } {
  const { type, text, thinking, signature, citations, input } = block;
  if (type === "text" && typeof text === "string") {
    const cited = Array.isArray(citations) ? citations : [];
    const deltas = cited.map((citation) => ({ type: "citations_delta", citation }));
    const start = { ...block, text: "", ...(cited.length > 0 ? { citations: [] } : {}) };
    return { start, deltas: [{ type: "text_delta", text }, ...deltas] };
  }
  if (type === "thinking" && typeof thinking === "string") {
    const deltas: JsonObject[] = [{ type: "thinking_delta", thinking }];
    if (typeof signature === "string") deltas.push({ type: "signature_delta", signature });
    return { start: { ...block, thinking: "", signature: "" }, deltas };
  }
  if (isObject(input)) {
    const partial = { type: "input_json_delta", partial_json: JSON.stringify(input) };
    return { start: { ...block, input: {} }, deltas: [partial] };
  }
  return { start: block, deltas: [] };
}

/** Whether a block is the model's call of a tool that the caller runs. */
export function isToolUse({ type }: JsonObject): boolean {
  return type === "tool_use";
}

/** Whether a message has anything besides empty texts. */
export function hasContent(blocks: readonly JsonObject[]): boolean {
  return blocks.some(({ type, text }) => type !== "text" || text !== "");
}

/** Whether a message has a text or a call of a tool. */
export function hasAnswer(blocks: readonly JsonObject[]): boolean {
  return blocks.some((block) => isToolUse(block) || (block.type === "text" && Boolean(block.text)));
}
