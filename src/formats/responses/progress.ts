import type { EventSourceMessage } from "eventsource-parser";
import { isObject, type Json, type JsonObject } from "../../base/json.ts";
import type { StreamProgress } from "../../inference/format.ts";
import { isSaid } from "../openai/progress.ts";
import { parsedChunk } from "../openai/stream_error.ts";
import { eventType } from "./failure.ts";
import { deltaIn, wholeTextIn } from "./open_item.ts";
import { writtenTexts } from "./output_items.ts";
import { responseIn } from "./stream_repair.ts";

/** What an event brings to the stream of a response. */
export function progressOfResponseEvent(message: EventSourceMessage): StreamProgress {
  if (message.data === "[DONE]") return "end";
  const event = parsedChunk(message.data);
  if (!isObject(event)) return "none";
  const type = eventType(event, message);
  switch (type) {
    case "response.created":
    case "response.in_progress":
    case "response.queued":
    case "response.failed":
      return "none";
    case "response.completed":
    case "response.incomplete":
    case "response.cancelled":
      return progressOfEnd(responseIn(event));
    case "response.output_item.added":
    case "response.output_item.done":
      return isItemSaid(event.item) ? "output" : "none";
    default:
      return type.startsWith("response.") && !isEmptyPart(type, event) ? "output" : "none";
  }
}

/** A response that failed is an error; one without output and usage has ended without any. */
function progressOfEnd({ status, error, output, usage }: JsonObject): StreamProgress {
  if (status === "failed" || error) return "none";
  return isSaid(output) || isObject(usage) ? "output" : "end";
}

/** Whether an item has a text, or is one that begins with a cost or a name. */
function isItemSaid(item: Json | undefined): boolean {
  if (!isObject(item)) return false;
  if (item.type !== "message" && item.type !== "reasoning") return true;
  for (const [, text] of writtenTexts(item)) if (text !== "") return true;
  return false;
}

/** Whether an event is about a part or a text that is still empty. */
function isEmptyPart(type: string, event: JsonObject): boolean {
  if (/_part\.(added|done)$/.test(type)) {
    return !isObject(event.part) || wholeTextIn(event.part) === "";
  }
  return type.endsWith(".delta") ? deltaIn(event) === "" : wholeTextIn(event) === "";
}
