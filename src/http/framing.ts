import { latin1Of } from "../base/latin1.ts";
import { type Head, listOf, ProtocolError } from "./head.ts";

/** Finds the end of a response's body while its bytes arrive. */
export interface BodyFraming {
  /** Whether the whole body has been read. */
  readonly done: boolean;
  /** Whether the body ends with the connection. */
  readonly untilClose: boolean;
  /**
   * Takes the body's bytes from the front of `bytes`: `used` of them are consumed, and `piece`, a
   * part of those, belongs to the body. Throws `ProtocolError`.
   */
  take(bytes: Uint8Array<ArrayBuffer>): BodyChunk;
}

/** What was taken from the received bytes. */
interface BodyChunk {
  used: number;
  piece: Uint8Array<ArrayBuffer>;
}

/**
 * Returns the framing of this response's body (RFC 9112, 6.3). Throws `ProtocolError`. `isTolerant`
 * accepts chunks in HTTP/1.0, and a body whose connection closes after its last chunk.
 */
export function framingOf({ status, minor, headers }: Head, isTolerant = false): BodyFraming {
  if (status === 204 || status === 304) return new Counted(0);
  const codings = headers.get("transfer-encoding");
  if (codings !== undefined && isCoded(codings, isTolerant ? 1 : minor)) {
    return new Chunked(isTolerant);
  }
  const given = headers.get("content-length");
  return given === undefined ? new UntilClose() : new Counted(lengthOf(given));
}

function isCoded(codings: string, minor: Head["minor"]): boolean {
  const listed = listOf(codings);
  const first = listed.findIndex((coding) => coding !== "identity");
  if (first < 0) return false;
  // Some servers list it twice, where both they and a proxy in front of them add it. It must be the
  // last: after it, even `identity` means another body to some programs.
  const isChunked = listed.slice(first).every((coding) => coding === "chunked");
  if (minor === 0 || !isChunked) {
    throw new ProtocolError(`a transfer-encoding other than chunked: ${codings}`);
  }
  return true;
}

const digits = /^\d{1,15}$/;

function lengthOf(given: string): number {
  if (digits.test(given)) return Number(given);
  const [length = "", ...others] = new Set(listOf(given));
  if (others.length > 0 || !digits.test(length)) {
    throw new ProtocolError(`an invalid content-length: ${given}`);
  }
  return Number(length);
}

class Counted implements BodyFraming {
  readonly untilClose = false;
  #left: number;

  constructor(length: number) {
    this.#left = length;
  }

  get done(): boolean {
    return this.#left === 0;
  }

  take(bytes: Uint8Array<ArrayBuffer>): BodyChunk {
    const used = Math.min(bytes.length, this.#left);
    this.#left -= used;
    return { used, piece: bytes.subarray(0, used) };
  }
}

class UntilClose implements BodyFraming {
  readonly done = false;
  readonly untilClose = true;

  take(piece: Uint8Array<ArrayBuffer>): BodyChunk {
    return { used: piece.length, piece };
  }
}

const lineFeed = 10;
/** The longest line of a chunk's size, with its extensions, and the longest trailer, in bytes. */
const lineBytesMax = 4 * 1024;

/** Chunked coding (RFC 9112, 7.1). Extensions and trailers are ignored. */
class Chunked implements BodyFraming {
  readonly #isTolerant: boolean;
  #part: "size" | "data" | "data's end" | "trailers" | "done" = "size";
  #left = 0;

  constructor(isTolerant: boolean) {
    this.#isTolerant = isTolerant;
  }

  get untilClose(): boolean {
    return this.#isTolerant && this.#part === "trailers";
  }

  get done(): boolean {
    return this.#part === "done";
  }

  /**
   * Chunks that arrive together are one piece: their data is moved together, over their size lines.
   */
  take(bytes: Uint8Array<ArrayBuffer>): BodyChunk {
    let used = 0;
    let length = 0;
    while (used < bytes.length && this.#part !== "done") {
      if (this.#part === "data") {
        const size = Math.min(this.#left, bytes.length - used);
        if (used !== length) bytes.copyWithin(length, used, used + size);
        used += size;
        length += size;
        this.#left -= size;
        if (this.#left === 0) this.#part = "data's end";
        continue;
      }
      const end = bytes.indexOf(lineFeed, used);
      if ((end < 0 ? bytes.length : end) - used > lineBytesMax) {
        throw new ProtocolError("a chunk line that is too long");
      }
      if (end < 0) break;
      this.#line(latin1Of(bytes.subarray(used, end)).replace(/\r$/, ""));
      used = end + 1;
    }
    return { used, piece: bytes.subarray(0, length) };
  }

  #line(line: string): void {
    if (this.#part === "trailers") {
      if (line === "") this.#part = "done";
      return;
    }
    if (this.#part === "data's end") {
      if (line !== "") throw new ProtocolError("a chunk that is longer than its size");
      this.#part = "size";
      return;
    }
    const size = /^0*([0-9a-f]{1,12})[ \t]*(?:;|$)/i.exec(line)?.[1];
    if (size === undefined) throw new ProtocolError("a chunk without a size");
    this.#left = parseInt(size, 16);
    this.#part = this.#left === 0 ? "trailers" : "data";
  }
}
