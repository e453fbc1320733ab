import type { EventSourceMessage } from "eventsource-parser";
import { type EventReader, isLargePart, startingWith } from "../../upstreams/event_reader.ts";
import { invalidUpstreamResponse, isDeadline, UpstreamError } from "../../upstreams/errors.ts";
import type { TextCall } from "../call.ts";
import { BodyScan } from "../meter/body_scan.ts";

/** The most characters and events of a preamble that are held back. */
const heldCharsMax = 256 * 1024;
const heldEventsMax = 1_000;

/**
 * Holds back the events of a stream that carry no output yet: a role, the start of a message, a
 * ping. Throws the error that comes before any output, and 502 for a stream that ends without any:
 * then the attempt has failed. Else returns a reader that begins with what was held back.
 */
export async function afterPreamble(call: TextCall, reader: EventReader): Promise<EventReader> {
  const held: EventSourceMessage[] = [];
  try {
    return await readPreamble(call, reader, held);
  } catch (error) {
    reader.cancel();
    // What the upstream has begun for a caller who left, or beyond our deadline, is charged.
    if (!(error instanceof UpstreamError) || isDeadline(error)) noteUsage(call, held);
    throw error;
  }
}

async function readPreamble(
  { attempt: { meter, target: { upstream: { apiKey } } }, format }: TextCall,
  reader: EventReader,
  held: EventSourceMessage[],
): Promise<EventReader> {
  let chars = 0;
  for (;;) {
    const read = await reader.next();
    if (read === "silent") continue;
    meter.bodyBegun = true;
    if (read === "end") throw invalidUpstreamResponse("a stream without output");
    if (isLargePart(read)) return startingWith([held, read], reader);
    for (const [at, event] of read.entries()) {
      const progress = format.progressOf(event);
      chars += event.data.length;
      if (progress === "output" || chars > heldCharsMax || held.length >= heldEventsMax) {
        return startingWith([[...held, ...read.slice(at)]], reader);
      }
      const error = format.errorOf(event, apiKey);
      if (error) throw error;
      if (progress === "end") throw invalidUpstreamResponse("a stream that ends without output");
      held.push(event);
    }
  }
}

function noteUsage(call: TextCall, held: readonly EventSourceMessage[]): void {
  const scan = new BodyScan(call);
  for (const { data } of held) scan.pushText(`data: ${data}\n\n`);
  scan.end();
}
