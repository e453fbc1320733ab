import type { EventSourceMessage } from "eventsource-parser";
import { isObject } from "../../base/json.ts";
import type { StreamProgress } from "../../inference/format.ts";
import { isSaid } from "../openai/progress.ts";
import { parsedChunk } from "../openai/stream_error.ts";

/** What an event brings to the stream of a message. */
export function progressOfMessageEvent({ data, event }: EventSourceMessage): StreamProgress {
  const chunk = parsedChunk(data);
  if (!isObject(chunk)) return "none";
  const { message, content_block: block, delta } = chunk;
  switch (typeof chunk.type === "string" ? chunk.type : event) {
    case "message_start":
      return isObject(message) && isSaid(message.content) ? "output" : "none";
    case "content_block_start":
      return isObject(block) &&
          Object.entries(block).some(([name, value]) =>
            name === "type" ? !emptyAtFirst.has(value) : isSaid(value)
          )
        ? "output"
        : "none";
    case "content_block_delta":
      return isObject(delta) &&
          Object.entries(delta).some(([name, value]) => name !== "type" && isSaid(value))
        ? "output"
        : "none";
    case "message_delta":
      return isObject(delta) && isSaid(delta.stop_reason) ? "output" : "none";
    case "message_stop":
      return "end";
    case "content_block_stop":
    case "ping":
    case "error":
    case undefined:
      return "none";
    default:
      return "output";
  }
}

/** Blocks in which an upstream has written something only by their start. */
export const emptyAtFirst = new Set<unknown>(["text", "thinking"]);
