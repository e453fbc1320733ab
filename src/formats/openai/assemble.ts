import { isObject, type Json, type JsonObject, plainNumber } from "../../base/json.ts";
import type { ChoiceMender, ChoiceShape, MendOptions } from "./choice_shape.ts";

/** Strings that a stream sends in pieces. Of others, such as ids, the last one counts. */
const inPieces = new Set([
  ...["content", "reasoning_content", "reasoning", "refusal", "text", "thinking"],
  ...["arguments", "input", "data", "transcript", "summary"],
]);

/** The chunks of a stream, put together as one whole response. Changes the chunks that it gets. */
export class ChunkAssembler {
  readonly #shape: ChoiceShape;
  readonly #mender: ChoiceMender;
  #body: JsonObject = {};
  readonly #choices = new Map<number, JsonObject>();

  constructor(shape: ChoiceShape, options: MendOptions) {
    this.#shape = shape;
    this.#mender = shape.createMender(options);
  }

  add({ choices: pieces, ...head }: JsonObject): void {
    for (const [name, value] of Object.entries(head)) {
      if (value !== null) this.#body[name] = value;
    }
    for (const [position, piece] of (Array.isArray(pieces) ? pieces : []).entries()) {
      const choice = this.#mender.mend(piece, position);
      if (!choice) continue;
      const index = plainNumber(choice.index);
      const known = this.#choices.get(index);
      if (known) mergePiece(known, choice);
      else this.#choices.set(index, { ...choice });
    }
  }

  /** Whether there is a choice, and every one has a finish reason. */
  get isFinished(): boolean {
    const choices = [...this.#choices.values()];
    return choices.length > 0 && choices.every(({ finish_reason }) => Boolean(finish_reason));
  }

  /** The response so far. */
  whole(): JsonObject {
    const ordered = [...this.#choices].sort(([one], [other]) => one - other);
    const choices = ordered.map(([, choice]) => asWhole(choice));
    return { ...this.#body, object: this.#shape.object, choices };
  }
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

function mergePiece(whole: JsonObject, piece: JsonObject): void {
  for (const [name, value] of Object.entries(piece)) {
    whole[name] = mergeValue(name, whole[name], value);
  }
}

function mergeValue(name: string, before: Json | undefined, value: Json): Json {
  if (before === undefined || before === null) return value;
  if (value === null || value === "") return before;
  if (typeof before === "string" && typeof value === "string") {
    return inPieces.has(name) ? before + value : value;
  }
  if (Array.isArray(before) && Array.isArray(value)) mergeLists(before, value);
  else if (isObject(before) && isObject(value)) mergePiece(before, value);
  else return value;
  return before;
}

/** Items with an index, such as tool calls, continue the item of that index. */
function mergeLists(whole: Json[], pieces: Json[]): void {
  for (const piece of pieces) {
    const index = isObject(piece) ? piece.index : undefined;
    const known = typeof index === "number"
      ? whole.findLast((item) => isObject(item) && item.index === index)
      : undefined;
    if (isObject(known) && isObject(piece)) mergePiece(known, piece);
    else whole.push(piece);
  }
}
