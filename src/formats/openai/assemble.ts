import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { ChoiceShape } from "./choice_shape.ts";

/** Strings that a stream sends in pieces. Of others, such as ids, the last one counts. */
const inPieces = new Set([
  ...["content", "reasoning_content", "reasoning", "refusal", "text", "thinking"],
  ...["arguments", "input", "data", "transcript", "summary"],
]);

/** The chunks of a stream as one whole response, for a caller that did not ask for a stream. */
export function assembleChunks(chunks: readonly JsonObject[], shape: ChoiceShape): JsonObject {
  let body: JsonObject = {};
  const choices = new Map<number, JsonObject>();
  for (const chunk of chunks) {
    const { choices: pieces, ...head } = chunk;
    body = { ...body, ...present(head) };
    for (const piece of Array.isArray(pieces) ? pieces : []) {
      const choice = shape.normalizeDelta(piece);
      if (!choice) continue;
      const index = Number(choice.index);
      choices.set(index, mergePiece(choices.get(index) ?? { index }, choice));
    }
  }
  const ordered = [...choices].sort(([one], [other]) => one - other).map(([, choice]) => choice);
  return { ...body, object: shape.object, choices: ordered.map(asWhole) };
}

/** A choice whose `delta` is the message. */
function asWhole({ delta, ...choice }: JsonObject): JsonObject {
  return delta === undefined ? choice : { ...choice, message: withoutIndexes(delta) };
}

function withoutIndexes(delta: Json): Json {
  if (!isObject(delta) || !Array.isArray(delta.tool_calls)) return delta;
  const calls = delta.tool_calls.map((call) => {
    if (!isObject(call)) return call;
    const { index: _, ...rest } = call;
    return rest;
  });
  return { ...delta, tool_calls: calls };
}

function mergePiece(whole: JsonObject, piece: JsonObject): JsonObject {
  const merged = { ...whole };
  for (const [name, value] of Object.entries(piece)) {
    merged[name] = mergeValue(name, merged[name], value);
  }
  return merged;
}

function mergeValue(name: string, before: Json | undefined, value: Json): Json {
  if (before === undefined || before === null) return value;
  if (value === null || value === "") return before;
  if (typeof before === "string" && typeof value === "string") {
    return inPieces.has(name) ? before + value : value;
  }
  if (Array.isArray(before) && Array.isArray(value)) return mergeLists(before, value);
  if (isObject(before) && isObject(value)) return mergePiece(before, value);
  return value;
}

/** Items with an index, such as tool calls, continue the item of that index. */
function mergeLists(before: Json[], pieces: Json[]): Json[] {
  const merged = [...before];
  for (const piece of pieces) {
    const index = isObject(piece) ? piece.index : undefined;
    const at = typeof index === "number"
      ? merged.findIndex((item) => isObject(item) && item.index === index)
      : -1;
    const known = merged[at];
    if (isObject(known) && isObject(piece)) merged[at] = mergePiece(known, piece);
    else merged.push(piece);
  }
  return merged;
}

function present(fields: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null));
}
