import { ApiError } from "../../base/errors.ts";
import type { Json, JsonObject } from "../../base/json.ts";
import { sseFrame } from "../openai/sse.ts";

/** Writes the events of one stream as frames, with consecutive numbers. */
export class FrameWriter {
  #last = -1;
  /** Events of ours that stand before the upstream's next one. */
  #added = 0;

  /** A frame for an event of the upstream; `text` is its own text, where nothing in it changed. */
  passOn(event: JsonObject, text: string | null): string {
    const number = this.#numberOf(event.sequence_number);
    if (text !== null && number === event.sequence_number) return frameOf(event.type, text);
    return writeEvent({ ...event, sequence_number: number });
  }

  /** A frame for an event of ours. */
  add(event: JsonObject): string {
    this.#added++;
    return writeEvent({ ...event, sequence_number: ++this.#last });
  }

  /** Counts an event that passes without being written here. */
  skip(): void {
    this.#last++;
  }

  #numberOf(own: Json | undefined): number {
    const wanted = typeof own === "number" ? own + this.#added : -1;
    this.#last = Number.isSafeInteger(wanted) && wanted > this.#last ? wanted : this.#last + 1;
    return this.#last;
  }
}

/** An event as a frame. */
export function writeEvent(event: JsonObject): string {
  return frameOf(event.type, JSON.stringify(event));
}

function frameOf(type: Json | undefined, data: string): string {
  const isName = typeof type === "string" && !/[\r\n]/.test(type);
  return isName ? `event: ${type}\n${sseFrame(data)}` : sseFrame(data);
}

/** An error as the event that ends a stream of this format. */
export function errorEvent(error: unknown): JsonObject {
  const shown = error instanceof ApiError ? error : new ApiError(500, {
    message: "The response could not be completed.",
    code: "internal_error",
  });
  const { message, param, code, type } = shown;
  return { type: "error", code: code ?? type, message, param, sequence_number: 0 };
}
