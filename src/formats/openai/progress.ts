import type { EventSourceMessage } from "eventsource-parser";
import { isObject, type Json } from "../../base/json.ts";
import type { StreamProgress } from "../../inference/format.ts";
import { parsedChunk } from "./stream_error.ts";

/** What an event brings to a stream of chunks with `choices`. */
export function progressOfChunk({ data }: EventSourceMessage): StreamProgress {
  if (data === "[DONE]") return "end";
  const chunk = parsedChunk(data);
  if (!isObject(chunk) || !Array.isArray(chunk.choices)) return "none";
  return chunk.choices.some(hasOutput) ? "output" : "none";
}

/** Whether a choice of a chunk says anything, or why it ended. */
export function hasOutput(choice: Json): boolean {
  if (!isObject(choice)) return false;
  const { delta, message = delta, text, finish_reason: reason } = choice;
  if (isSaid(text) || (isSaid(reason) && reason !== "error")) return true;
  if (!isObject(message)) return false;
  return Object.entries(message).some(([name, value]) => name !== "role" && isSaid(value));
}

/** Whether a value is a text, a list or an object that is not empty. */
export function isSaid(value: Json | undefined): boolean {
  if (typeof value === "string") return value !== "";
  if (Array.isArray(value)) return value.length > 0;
  return isObject(value) && Object.keys(value).length > 0;
}
