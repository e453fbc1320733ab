import type { UpstreamBody, UpstreamResponse } from "../deps.ts";
import { readStream } from "./by_fetch.ts";

/**
 * Decompresses the response of a server that compresses although it was asked not to. It is
 * inflated as it is read, and its reader limits the size.
 */
export function inflated(response: UpstreamResponse, signal: AbortSignal): UpstreamResponse {
  const encoding = response.header("content-encoding")?.toLowerCase();
  if (encoding !== "gzip" && encoding !== "deflate") return response;
  const inflating = asStream(response.body).pipeThrough(new DecompressionStream(encoding));
  return { ...response, body: readStream(inflating, signal) };
}

function asStream(body: UpstreamBody): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream({
    async pull(controller) {
      const piece = await body.read();
      // A chunk is only valid until the next is read.
      if (piece) controller.enqueue(piece.slice());
      else controller.close();
    },
    cancel: () => body.cancel(),
  }, { highWaterMark: 0 });
}
