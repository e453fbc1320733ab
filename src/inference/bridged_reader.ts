import { type EventReader, isLargePart } from "../upstreams/event_reader.ts";
import { beyondOurBounds } from "../upstreams/errors.ts";
import type { EventTranslator } from "./format.ts";

/**
 * Reads the events of a stream in another format as those of the caller's. Its `next` throws also
 * what the translator throws, and 502 for an event that is too large to be translated.
 */
export function bridgedReader(reader: EventReader, translator: EventTranslator): EventReader {
  let ended = false;
  return {
    async next() {
      if (ended) return "end";
      const read = await reader.next();
      if (read === "silent") return read;
      if (read === "end") {
        ended = true;
        const left = translator.end();
        return left.length > 0 ? left : "end";
      }
      if (isLargePart(read)) throw beyondOurBounds("an event that is too large to be translated");
      return read.flatMap((event) => translator.take(event));
    },
    cancel: () => reader.cancel(),
    finish: () => reader.finish(),
  };
}
