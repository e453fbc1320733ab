import type { RequestUpstream, UpstreamBody, UpstreamResponse } from "../deps.ts";

/** Adapts a `fetch` to an upstream client, such as the sandbox's, which has no network. */
export function requestByFetch(
  fetch: (url: string, init: RequestInit) => Promise<Response>,
): RequestUpstream {
  return async ({ url, method, headers, body, signal, onSend }) => {
    onSend?.(true);
    // A redirect would carry the operator's key to another host.
    const response = await fetch(url, { method, headers, body, signal, redirect: "manual" });
    return asUpstreamResponse(response, signal);
  };
}

function asUpstreamResponse(response: Response, signal: AbortSignal): UpstreamResponse {
  return {
    status: response.status,
    header: (name) => response.headers.get(name),
    body: response.body ? readStream(response.body, signal) : emptyBody,
  };
}

const emptyBody: UpstreamBody = {
  read: () => Promise.resolve(null),
  cancel() {},
  finish() {},
};

/** Reads a stream as a body. */
export function readStream(
  stream: ReadableStream<Uint8Array<ArrayBuffer>>,
  signal: AbortSignal,
): UpstreamBody {
  const reader = openReader(stream);
  // A fetch forgets its signal once its response has been collected, so the body listens itself.
  const abort = () => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener("abort", abort, { once: true });
  const cancel = () => {
    signal.removeEventListener("abort", abort);
    reader.cancel().catch(() => {});
  };
  return {
    async read() {
      const { done, value } = await reader.read();
      if (!done && value) return value;
      signal.removeEventListener("abort", abort);
      return null;
    },
    cancel,
    finish: cancel,
  };
}

/** The size of the read buffer, in bytes: by default, Deno reserves 64 KiB for each stream. */
const pieceBytes = 4 * 1024;

type Piece = { done: boolean; value?: Uint8Array<ArrayBuffer> | undefined };

interface Reader {
  read(): Promise<Piece>;
  cancel(reason?: unknown): Promise<void>;
}

/** Reads into one small buffer, over and over, where the stream supports it. */
function openReader(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Reader {
  try {
    const reader = stream.getReader({ mode: "byob" });
    let buffer = new ArrayBuffer(pieceBytes);
    return {
      async read() {
        const piece = await reader.read(new Uint8Array(buffer));
        // A chunk is valid until the next is read; then its memory is reused.
        if (piece.value) buffer = piece.value.buffer;
        return piece;
      },
      cancel: (reason) => reader.cancel(reason),
    };
  } catch {
    // A decompressed stream does not support it.
    const reader = stream.getReader();
    return { read: () => reader.read(), cancel: (reason) => reader.cancel(reason) };
  }
}
