import { droppedBytesMax } from "../base/limits.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { UpstreamBody, UpstreamResponse } from "../deps.ts";
import { readModelBody, readTail } from "../upstreams/client.ts";
import { isOurBound } from "../upstreams/errors.ts";
import { parseEvents } from "../upstreams/event_reader.ts";
import { type AdmittedCall, type InferenceDeps, responseHead } from "./call.ts";
import type { CompleteResponse } from "./format.ts";

/** How a body of server-sent events begins. */
export const isEvents = /^\ufeff?\s*(?:data|event|id|retry)?:/;

/** Where the usage of a response is looked for that is too large to be read. */
const searchedBytes = 64 * 1024;

/**
 * Reads a whole response, also from a server that sends events to a caller who did not ask for
 * them. Throws 502 for what is not a response, and for what exceeds our own bounds: the meter then
 * has the usage, where it can still be found.
 */
export async function readWhole(
  { deps: { config } }: InferenceDeps,
  call: AdmittedCall,
  { header, body }: Pick<UpstreamResponse, "header" | "body">,
): Promise<CompleteResponse> {
  const { format, input, meter, upstream: { apiKey }, controller: { signal } } = call;
  const bytes = await readModelBody(body, {
    bytesMax: config.upstreamBodyBytesMax,
    signal,
    onBegin: () => void (meter.bodyBegun = true),
    onTooLarge: (start, last) => findUsage(call, { body, start, last }),
  });
  const options = { request: input, head: responseHead(call), apiKey };
  try {
    const start = decodeUtf8(bytes.subarray(0, 64)) ?? "";
    const hasEvents = /^text\/event-stream/i.test(header("content-type") ?? "") ||
      isEvents.test(start);
    return hasEvents
      ? format.readEvents(parseEvents(decodeUtf8(bytes) ?? ""), options)
      : format.readResponse(bytes, options);
  } catch (error) {
    if (isOurBound(error)) meter.addUsage(format.findUsage(textsOf([bytes])));
    throw error;
  }
}

/** Reads the rest of a body that is too large, for its usage. */
async function findUsage(
  { format, meter, controller: { signal } }: AdmittedCall,
  { body, start, last }: { body: UpstreamBody; start: Uint8Array; last: Uint8Array },
): Promise<void> {
  const tail = await readTail(body, {
    before: [start.subarray(-searchedBytes), last],
    tailBytes: searchedBytes,
    bytesMax: droppedBytesMax,
    signal,
  });
  meter.addUsage(format.findUsage(textsOf([start.subarray(0, searchedBytes), tail])));
}

function textsOf(parts: readonly Uint8Array[]): string[] {
  const decoder = new TextDecoder();
  return parts.map((part) => decoder.decode(part));
}
