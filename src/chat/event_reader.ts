import { createParser, type EventSourceMessage } from "eventsource-parser";
import { keepAliveMs, upstreamEventCharsMax } from "../base/limits.ts";
import type { Clock } from "../deps.ts";
import { Patience } from "./patience.ts";
import { asAborted } from "./upstream.ts";
import { badUpstream, upstreamBrokeOff, upstreamTimeout } from "./upstream_error.ts";

/** What came of waiting for the upstream: events, silence worth a sign of life, or the end. */
export type Read = EventSourceMessage[] | "silent" | "end";

/** Server-sent events of an upstream, pulled: nothing is read ahead of its reader. */
export interface EventReader {
  /** Throws 504 after too long a silence, 502 when the stream breaks off or an event is too large. */
  next(): Promise<Read>;
  /** Lets the upstream go. */
  cancel(): void;
}

interface ReaderOptions {
  clock: Clock;
  idleMs: number;
  signal: AbortSignal;
}

/**
 * Reads a body with one reader: `tee` would read at the speed of the faster branch, and keep the
 * rest in memory. A multi-byte character or a frame may be split anywhere.
 */
export function createEventReader(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  { clock, idleMs, signal }: ReaderOptions,
): EventReader {
  const reader = openReader(body);
  const patience = new Patience<Piece>(clock);
  // The parser knows of the mark at the start; Deno's decoder also drops one that starts a later part.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let events: EventSourceMessage[] = [];
  let charsSinceEvent = 0;
  let pending: Promise<Piece> | null = null;
  let silentMs = 0;
  let waitMs = 0;
  /** When there was last something to tell: an upstream's own comments are nothing. */
  let toldAt = clock.elapsed();
  let ended = false;
  // A fetch forgets its signal once its response has been collected, so the body is told itself.
  const leave = () => void reader.cancel(signal.reason).catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  const parser = createParser({
    onEvent(event) {
      events.push(event);
      charsSinceEvent = 0;
    },
  });

  function feed(text: string): EventSourceMessage[] {
    charsSinceEvent += text.length;
    parser.feed(text);
    if (charsSinceEvent > upstreamEventCharsMax) throw badUpstream("an event that is too large");
    const fed = events;
    events = [];
    return fed;
  }

  function next(): Promise<Read> {
    if (ended) return Promise.resolve("end");
    pending ??= reader.read();
    waitMs = Math.min(keepAliveMs, idleMs - silentMs);
    return patience.wait(pending, waitMs).then(received, brokenOff);
  }

  function received(piece: Piece | null): Read {
    const read = readPiece(piece);
    const isNothing = Array.isArray(read) && read.length === 0;
    if (isNothing && clock.elapsed() - toldAt < keepAliveMs) return read;
    toldAt = clock.elapsed();
    return isNothing && !ended ? "silent" : read;
  }

  function readPiece(piece: Piece | null): Read {
    if (piece === null) {
      silentMs += waitMs;
      if (silentMs >= idleMs) throw upstreamTimeout(`silent for ${idleMs} ms`);
      return "silent";
    }
    pending = null;
    silentMs = 0;
    const aborted = asAborted(signal);
    if (aborted) throw aborted;
    if (!piece.done && piece.value) {
      const text = decoder.decode(piece.value, { stream: true });
      reader.reuse(piece.value.buffer);
      return feed(text);
    }
    ended = true;
    // A last event without its blank line counts too.
    return feed(decoder.decode() + "\n\n");
  }

  function brokenOff(cause: unknown): never {
    throw asAborted(signal) ?? upstreamBrokeOff(cause);
  }

  return {
    next,
    cancel() {
      ended = true;
      patience.end();
      pending?.catch(() => {});
      signal.removeEventListener("abort", leave);
      reader.cancel().catch(() => {});
    },
  };
}

/** What pieces are read into, in bytes: left alone, Deno sets 64 KiB aside for each stream. */
const pieceBytes = 4 * 1024;

interface Piece {
  done: boolean;
  value?: Uint8Array<ArrayBuffer> | undefined;
}

interface BodyReader {
  read(): Promise<Piece>;
  /** Takes back the memory of a piece that is done with. */
  reuse(buffer: ArrayBuffer): void;
  cancel(reason?: unknown): Promise<void>;
}

/** Reads into one small buffer, over and over, where the body can do that. */
function openReader(body: ReadableStream<Uint8Array<ArrayBuffer>>): BodyReader {
  try {
    const reader = body.getReader({ mode: "byob" });
    let buffer = new ArrayBuffer(pieceBytes);
    return {
      read: () => reader.read(new Uint8Array(buffer)),
      reuse: (done) => void (buffer = done),
      cancel: (reason) => reader.cancel(reason),
    };
  } catch {
    // One that was decompressed on its way cannot.
    const reader = body.getReader();
    return { read: () => reader.read(), reuse() {}, cancel: (reason) => reader.cancel(reason) };
  }
}

/** Events that are all there already, as a reader gives them. */
export function replayEvents(events: EventSourceMessage[]): EventReader {
  let read = false;
  return {
    next() {
      if (read) return Promise.resolve("end");
      read = true;
      return Promise.resolve(events);
    },
    cancel() {},
  };
}
