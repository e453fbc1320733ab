import type { EventSourceMessage } from "eventsource-parser";
import { type EventReader, isLargePart } from "../../upstreams/event_reader.ts";
import { beyondOurBounds } from "../../upstreams/errors.ts";
import type { AdmittedCall } from "../call.ts";
import type { Bridge, BridgeOptions } from "../format.ts";
import { BodyScan } from "../meter/body_scan.ts";

/**
 * Reads the events of a stream in another format as events of the caller's format. `next` also
 * throws the translator's errors, and 502 for an event that is too large to be translated; the
 * meter then has the usage in it.
 */
export function bridgedReader(
  reader: EventReader,
  { call, bridge, options }: { call: AdmittedCall; bridge: Bridge; options: BridgeOptions },
): EventReader {
  const translator = bridge.createTranslator(options);
  let large: BodyScan | null = null;
  let ended = false;
  /** What the translator has thrown after events of the same read. */
  let thrown: { error: unknown } | null = null;

  function translate(read: readonly EventSourceMessage[]): EventSourceMessage[] {
    const events: EventSourceMessage[] = [];
    try {
      for (const event of read) events.push(...translator.take(event));
    } catch (error) {
      if (events.length === 0) throw error;
      thrown = { error };
    }
    return events;
  }

  return {
    async next() {
      if (thrown) throw thrown.error;
      if (ended) return "end";
      const read = await reader.next();
      if (read === "silent") return read;
      if (read === "end") {
        ended = true;
        const left = translator.end();
        return left.length > 0 ? left : "end";
      }
      if (!isLargePart(read)) return translate(read);
      large ??= new BodyScan(call, bridge.format);
      large.pushText(read.largeText);
      if (!read.isLast) return [];
      large.end();
      throw beyondOurBounds("an event that is too large to be translated");
    },
    cancel: () => reader.cancel(),
    finish: () => reader.finish(),
  };
}
