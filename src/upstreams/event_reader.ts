import { createParser, type EventSourceMessage } from "eventsource-parser";
import { keepAliveMs } from "../base/limits.ts";
import type { Clock } from "../base/clock.ts";
import type { UpstreamBody } from "../deps.ts";
import { TimedWait } from "../base/timed_wait.ts";
import { abortError } from "./client.ts";
import { beyondOurBounds, upstreamDisconnected, upstreamTimeout } from "./errors.ts";

/** The result of one read: events, silence that calls for a keep-alive, or the end. */
export type EventRead = EventSourceMessage[] | "silent" | "end";

/** Pulls server-sent events from an upstream, without reading ahead. */
export interface EventReader {
  /**
   * Throws 504 after too long a silence, 502 when the stream ends early or an event is too large.
   */
  next(): Promise<EventRead>;
  /** Aborts the upstream. */
  cancel(): void;
  /** Releases the upstream after its last event. */
  finish(): void;
}

type Piece = Uint8Array<ArrayBuffer>;

interface ReaderOptions {
  clock: Clock;
  idleMs: number;
  /** The largest event, in characters. */
  eventCharsMax: number;
  signal: AbortSignal;
}

/** The parser scans an unfinished line again with each piece: of a longer one it gets no pieces. */
const lineHeldFrom = 256 * 1024;

/** Reads a body's events. A multi-byte character or a frame may be split anywhere. */
export function createEventReader(
  body: UpstreamBody,
  { clock, idleMs, eventCharsMax, signal }: ReaderOptions,
): EventReader {
  const timedWait = new TimedWait<Piece | null>(clock);
  // The parser removes a byte order mark at the start; Deno's decoder would also drop later ones.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let events: EventSourceMessage[] = [];
  let charsSinceEvent = 0;
  /** Pieces of a long line whose end has not arrived. */
  let heldLine: string[] = [];
  let pending: Promise<Piece | null> | null = null;
  let silentMs = 0;
  let waitMs = 0;
  /** When the last event or keep-alive was reported; an upstream's comments do not count. */
  let reportedAt = clock.elapsed();
  let ended = false;
  const parser = createParser({
    onEvent(event) {
      events.push(event);
      charsSinceEvent = 0;
    },
  });

  function feed(text: string): EventSourceMessage[] {
    charsSinceEvent += text.length;
    if (charsSinceEvent > eventCharsMax) {
      throw beyondOurBounds(`an event of more than ${eventCharsMax} characters`);
    }
    if (charsSinceEvent > lineHeldFrom && !/[\r\n]/.test(text)) {
      heldLine.push(text);
      return [];
    }
    parser.feed(heldLine.length === 0 ? text : heldLine.join("") + text);
    heldLine = [];
    const fed = events;
    events = [];
    return fed;
  }

  function next(): Promise<EventRead> {
    if (ended) return Promise.resolve("end");
    pending ??= body.read();
    waitMs = Math.min(keepAliveMs, idleMs - silentMs);
    return timedWait.wait(pending, waitMs).then(received, brokenOff);
  }

  function received(piece: Piece | null | "timeout"): EventRead {
    const read = readPiece(piece);
    const isNothing = Array.isArray(read) && read.length === 0;
    if (isNothing && clock.elapsed() - reportedAt < keepAliveMs) return read;
    reportedAt = clock.elapsed();
    return isNothing && !ended ? "silent" : read;
  }

  function readPiece(piece: Piece | null | "timeout"): EventRead {
    if (piece === "timeout") {
      silentMs += waitMs;
      if (silentMs >= idleMs) throw upstreamTimeout(`silent for ${idleMs} ms`);
      return "silent";
    }
    pending = null;
    silentMs = 0;
    const aborted = abortError(signal);
    if (aborted) throw aborted;
    if (piece) return feed(decoder.decode(piece, { stream: true }));
    ended = true;
    // A last event without its blank line counts too.
    return feed(decoder.decode() + "\n\n");
  }

  function brokenOff(cause: unknown): never {
    throw abortError(signal) ?? upstreamDisconnected(cause);
  }

  function end(): void {
    ended = true;
    timedWait.end();
    pending?.catch(() => {});
  }

  return {
    next,
    cancel() {
      end();
      body.cancel();
    },
    finish() {
      end();
      body.finish();
    },
  };
}

/**
 * Puts events that were read already in front of a reader.
 */
export function startingWith(first: EventSourceMessage[], reader: EventReader): EventReader {
  let hasFirst = true;
  return {
    next() {
      if (!hasFirst) return reader.next();
      hasFirst = false;
      return Promise.resolve(first);
    },
    cancel: () => reader.cancel(),
    finish: () => reader.finish(),
  };
}

/** Parses a whole text of server-sent events. */
export function parseEvents(text: string): EventSourceMessage[] {
  const events: EventSourceMessage[] = [];
  const parser = createParser({ onEvent: (event) => void events.push(event) });
  parser.feed(`${text}\n\n`);
  return events;
}

/** A reader of events that are complete already. */
export function eventsReader(events: EventSourceMessage[]): EventReader {
  let read = false;
  return {
    next() {
      if (read) return Promise.resolve("end");
      read = true;
      return Promise.resolve(events);
    },
    cancel() {},
    finish() {},
  };
}
