import { createParser, type EventSourceMessage, type EventSourceParser } from "eventsource-parser";
import { keepAliveMs } from "../base/limits.ts";
import type { Clock } from "../base/clock.ts";
import { type MemoryShare, unsharedBytes } from "../base/memory_budget.ts";
import type { UpstreamBody } from "../deps.ts";
import { TimedWait } from "../base/timed_wait.ts";
import { abortError } from "./client.ts";
import { beyondOurBounds, upstreamDisconnected, upstreamTimeout } from "./errors.ts";

/** The result of one read: events, silence that calls for a keep-alive, or the end. */
export type EventRead = EventSourceMessage[] | LargeEventPart | "silent" | "end";

/** A part of an event that is too large to be parsed: its text as it was sent. */
export interface LargeEventPart {
  largeText: string;
  /** Whether this part is the event's last one. */
  isLast: boolean;
}

/** Whether a read is a part of a large event. */
export function isLargePart(read: EventRead): read is LargeEventPart {
  return typeof read === "object" && "largeText" in read;
}

/** Pulls server-sent events from an upstream, without reading ahead. */
export interface EventReader {
  /**
   * Throws 504 after too long a silence, 502 when the stream ends early or the lines of an event
   * are too large together.
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
  /** The largest event that is parsed, in characters. */
  eventCharsMax: number;
  /**
   * The length of a line, in characters, beyond which it is given in parts as it arrives, although
   * it might be parsed.
   */
  lineCharsMax?: number;
  /** Reserves memory for large events. A line for which there is none is given in parts too. */
  memory: MemoryShare;
  signal: AbortSignal;
}

/**
 * Reads a body's events. A multi-byte character or a frame may be split anywhere. An event with a
 * line that is too large is given in parts, as they arrive.
 */
export function createEventReader(
  body: UpstreamBody,
  { clock, idleMs, eventCharsMax, lineCharsMax = eventCharsMax, memory, signal }: ReaderOptions,
): EventReader {
  const timedWait = new TimedWait<Piece | null>(clock);
  // The parser removes a byte order mark at the start; Deno's decoder would also drop later ones.
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const lines = new EventLines({
    eventCharsMax,
    lineCharsMax: Math.min(lineCharsMax, eventCharsMax),
    memory,
  });
  let pending: Promise<Piece | null> | null = null;
  let silentMs = 0;
  let waitMs = 0;
  /** When the last event or keep-alive was reported; an upstream's comments do not count. */
  let reportedAt = clock.elapsed();
  let ended = false;

  function next(): Promise<EventRead> {
    if (!lines.isEmpty) return Promise.resolve(lines.take());
    lines.releaseTaken();
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
    // A last event without its blank line counts too.
    ended = piece === null;
    lines.feed(piece ? decoder.decode(piece, { stream: true }) : decoder.decode() + "\n\n");
    return lines.take();
  }

  function brokenOff(cause: unknown): never {
    throw abortError(signal) ?? upstreamDisconnected(cause);
  }

  function end(): void {
    ended = true;
    memory.release();
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

/** Bytes of memory that a character of an event takes: as text, as values, and as text again. */
const memoryPerChar = 4;

/** Turns the text of a stream into events, and lines that are too large into parts. */
class EventLines {
  readonly #eventCharsMax: number;
  readonly #lineCharsMax: number;
  readonly #memory: MemoryShare;
  readonly #parser: EventSourceParser;
  /**
   * Events and parts that were read before `#events`, where a part of a large event is among them.
   */
  #queue: (EventSourceMessage[] | LargeEventPart)[] = [];
  #events: EventSourceMessage[] = [];
  /** Characters of an event's lines since the last event. */
  #eventChars = 0;
  /** Pieces of a line whose end has not arrived: the parser would scan it again with each. */
  #line: string[] = [];
  #lineChars = 0;
  /** Whether the current line is given in parts. */
  #isLarge = false;
  /** Whether memory is reserved for an event. */
  #hasMemory = false;

  constructor(
    { eventCharsMax, lineCharsMax, memory }:
      & Pick<ReaderOptions, "eventCharsMax" | "memory">
      & Required<Pick<ReaderOptions, "lineCharsMax">>,
  ) {
    this.#eventCharsMax = eventCharsMax;
    this.#lineCharsMax = lineCharsMax;
    this.#memory = memory;
    this.#parser = createParser({
      onEvent: (event) => {
        this.#events.push(event);
        this.#eventChars = 0;
      },
    });
  }

  /**
   * Reads a piece of text; `take` then returns the events that it completes. Throws 502 when an
   * event is too large.
   */
  feed(text: string): void {
    let rest = this.#isLarge ? this.#feedLarge(text) : text;
    if (rest === "") return;
    const end = lineEnd(rest);
    if (end > 0) {
      this.#parse(this.#takeLine(rest.slice(0, end)));
      rest = rest.slice(end);
    }
    if (rest !== "") this.#hold(rest);
  }

  /** Returns events or a part that were read and not taken yet; no events when there is nothing. */
  take(): EventSourceMessage[] | LargeEventPart {
    const first = this.#queue.shift();
    if (first) return first;
    const events = this.#events;
    if (events.length > 0) this.#events = [];
    return events;
  }

  get isEmpty(): boolean {
    return this.#events.length === 0 && this.#queue.length === 0;
  }

  /** Gives back the memory of the events that were taken: their reader is done with them. */
  releaseTaken(): void {
    if (!this.#hasMemory || this.#lineChars + this.#eventChars > 0) return;
    this.#memory.release();
    this.#hasMemory = false;
  }

  #parse(lines: string): void {
    this.#eventChars += lines.length;
    this.#parser.feed(lines);
    // Comments and fields without data are no part of the next event.
    if (this.#eventChars > 0 && lines.endsWith("\n\n")) this.#eventChars = 0;
    if (this.#eventChars > this.#eventCharsMax) {
      throw beyondOurBounds(`an event with lines of more than ${this.#eventCharsMax} characters`);
    }
    if (!this.#reserve(this.#eventChars)) {
      throw beyondOurBounds(`an event with lines of ${this.#eventChars} characters, for now`);
    }
  }

  /** Reserves the memory of an event of so many characters; small ones are not counted. */
  #reserve(chars: number): boolean {
    if (chars <= unsharedBytes) return true;
    const isReserved = this.#memory.reserve(chars * memoryPerChar);
    this.#hasMemory ||= isReserved;
    return isReserved;
  }

  /** Keeps a part of a line, or starts to give the line in parts. */
  #hold(part: string): void {
    this.#line.push(part);
    this.#lineChars += part.length;
    const fits = this.#lineChars <= this.#lineCharsMax &&
      this.#reserve(this.#eventChars + this.#lineChars);
    if (fits) return;
    const largeText = this.#takeLine("");
    if (!/^\ufeff?data:/.test(largeText)) {
      throw beyondOurBounds(`a line of more than ${this.#lineCharsMax} characters without data`);
    }
    this.#isLarge = true;
    this.#addPart({ largeText, isLast: false });
  }

  /** Gives a part of a large line; returns what comes after its end. */
  #feedLarge(text: string): string {
    const end = text.search(/[\r\n]/);
    this.#isLarge = end < 0;
    this.#addPart({ largeText: end < 0 ? text : text.slice(0, end), isLast: end >= 0 });
    return end < 0 ? "" : text.slice(end);
  }

  #addPart(part: LargeEventPart): void {
    if (this.#events.length > 0) this.#queue.push(this.#events);
    this.#events = [];
    this.#queue.push(part);
  }

  #takeLine(last: string): string {
    if (this.#line.length === 0) return last;
    const line = this.#line.join("") + last;
    this.#line = [];
    this.#lineChars = 0;
    return line;
  }
}

/** The place after the last line end of a text; 0 where it has none. */
function lineEnd(text: string): number {
  const last = text.at(-1);
  if (last === "\n") return text.length;
  return Math.max(text.lastIndexOf("\n"), text.lastIndexOf("\r")) + 1;
}

/** Returns a reader that begins with what another one has already read. */
export function startingWith(first: readonly EventRead[], reader: EventReader): EventReader {
  let at = 0;
  return {
    next() {
      const read = first[at];
      if (read === undefined) return reader.next();
      at++;
      return Promise.resolve(read);
    },
    cancel: () => reader.cancel(),
    finish: () => reader.finish(),
  };
}

/** A reader of events that have all arrived. */
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
