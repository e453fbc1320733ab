import type { Json, JsonObject } from "../../base/json.ts";

/** Identifies a response: the upstream's own values where they are valid, else `ours`. */
export function normalizeHead(
  { id, created, model }: JsonObject,
  ours: JsonObject,
): JsonObject {
  const text = (theirs: Json | undefined, name: string) =>
    typeof theirs === "string" && theirs !== "" ? theirs : ours[name] ?? "";
  return {
    id: text(id, "id"),
    object: ours.object ?? "",
    created: Number.isSafeInteger(created) ? created ?? 0 : ours.created ?? 0,
    model: text(model, "model"),
  };
}

/** Whether a chunk already has the fields of `head`. */
export function hasHead(chunk: JsonObject, head: JsonObject): boolean {
  return chunk.id === head.id && chunk.created === head.created && chunk.model === head.model &&
    chunk.object === head.object;
}
