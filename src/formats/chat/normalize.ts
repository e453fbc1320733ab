import { isObject, type Json, type JsonObject } from "../../base/json.ts";

// What clients rely on in every answer, put in where a server leaves it out or sends nonsense.

/** What names an answer: the server's where they are what they should be, else ours. */
export function normalizeHead(
  { id, object, created, model }: JsonObject,
  ours: JsonObject,
): JsonObject {
  const text = (theirs: Json | undefined, name: string) =>
    typeof theirs === "string" ? theirs : ours[name] ?? "";
  return {
    id: text(id, "id"),
    object: text(object, "object"),
    created: Number.isSafeInteger(created) ? created ?? 0 : ours.created ?? 0,
    model: text(model, "model"),
  };
}

/** Whether a chunk says of itself what `head` says. */
export function hasHead(chunk: JsonObject, head: JsonObject): boolean {
  return chunk.id === head.id && chunk.created === head.created && chunk.model === head.model &&
    chunk.object === head.object;
}

/** A choice of a whole answer; null for what holds no message. */
export function normalizeChoice(choice: Json, position: number): JsonObject | null {
  if (!isObject(choice) || !isObject(choice.message)) return null;
  const { message, index, finish_reason: reason } = choice;
  if (!isContent(message.content)) return null;
  return {
    logprobs: null,
    ...choice,
    index: isIndex(index) ? index : position,
    message: {
      refusal: null,
      ...message,
      role: typeof message.role === "string" ? message.role : "assistant",
    },
    finish_reason: isReason(reason) ? reason : message.tool_calls ? "tool_calls" : "stop",
  };
}

/** A choice of a chunk: the same object where it lacks nothing; null for what is none. */
export function normalizeDelta(choice: Json): JsonObject | null {
  if (!isObject(choice)) return null;
  const { delta, index, finish_reason: reason = null } = choice;
  const piece = delta ?? {};
  if (!isObject(piece) || !isContent(piece.content)) return null;
  const ended = reason === null || isReason(reason);
  if (piece === delta && isIndex(index) && ended) return choice;
  return {
    ...choice,
    index: isIndex(index) ? index : 0,
    delta: piece,
    finish_reason: ended ? reason : null,
  };
}

/** Some servers send an empty text for none. */
function isReason(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}

function isIndex(value: Json | undefined): value is number {
  return Number.isSafeInteger(value);
}

/** Text, parts of it, or nothing. */
function isContent(value: Json | undefined): boolean {
  return value === undefined || value === null || typeof value === "string" || Array.isArray(value);
}
