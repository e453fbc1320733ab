import type { Clock } from "../base/clock.ts";
import type { UpstreamBody, UpstreamResponse } from "../deps.ts";
import { type BodyFraming, framingOf } from "./framing.ts";
import { type Head, keepAliveOf, keepsOpen, ProtocolError, readHead } from "./head.ts";
import type { Pace } from "./pace.ts";

/** What bytes come and go by: a `Deno.Conn`, with TLS or without. */
export interface HttpSocket {
  /** Null at the end. Rejects when it is closed meanwhile. */
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  close(): void;
}

/** Who takes care of a connection between two requests. */
export interface ConnectionPool {
  clock: Pick<Clock, "after" | "elapsed">;
  pace: Pace;
  /** It may be asked again, for so many ms if its server said so. */
  keep(connection: HttpConnection, keepAliveMs: number | null): void;
}

// A stream that waits for its next event holds no more than this; what comes faster gets more.
const bufferBytes = 4 * 1024;
const bufferBytesMax = 64 * 1024;
const headBytesMax = 64 * 1024;
/** Most heads before the one that answers: a server that never comes to it is left. */
const interimHeadsMax = 16;
/** What is read of a body only for its end's sake, at most: in bytes, and in milliseconds. */
const restBytesMax = 16 * 1024;
const restMs = 1_000;

/** One connection to a server, for one request after the other. */
export class HttpConnection {
  readonly #socket: HttpSocket;
  readonly #keeper: ConnectionPool;
  #buffer = new Uint8Array(bufferBytes);
  /** What came and is not used yet is between these. */
  #start = 0;
  #end = 0;
  #reading: Promise<number | null> | null = null;
  #sending = false;
  #closed = false;
  #answered = false;

  constructor(socket: HttpSocket, keeper: ConnectionPool) {
    this.#socket = socket;
    this.#keeper = keeper;
  }

  /**
   * Sends a request and reads the response's head; the body is read by its reader. Rejects when the
   * server leaves, does not speak HTTP/1.1, or `signal` is aborted, which closes the connection.
   */
  async ask(request: Uint8Array, signal: AbortSignal): Promise<UpstreamResponse> {
    const close = () => this.close();
    signal.addEventListener("abort", close, { once: true });
    const forget = () => signal.removeEventListener("abort", close);
    this.#answered = false;
    try {
      signal.throwIfAborted();
      // A server may answer before it has read everything, so both go on at once.
      this.#send(request);
      const head = await this.#readHead();
      return {
        status: head.status,
        header: (name) => head.headers.get(name) ?? null,
        body: this.#body(head, forget),
      };
    } catch (error) {
      forget();
      this.close();
      throw error;
    }
  }

  /** Whether anything has come since it was last asked. */
  get answered(): boolean {
    return this.#answered;
  }

  /**
   * Calls `react` when the server leaves, or speaks, while nobody waits for it; or has done since.
   */
  whenUnasked(react: () => void): void {
    this.#reading ??= this.#read();
    this.#reading.then(react, react);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reading?.catch(() => {});
    this.#socket.close();
  }

  #send(request: Uint8Array): void {
    this.#sending = true;
    const sendAll = async () => {
      for (let sent = 0; sent < request.length;) {
        sent += await this.#socket.write(sent === 0 ? request : request.subarray(sent));
      }
      this.#sending = false;
    };
    // Reading tells the same, and what a server said before it left besides.
    sendAll().catch(() => {});
  }

  async #readHead(): Promise<Head> {
    for (let interim = 0; interim <= interimHeadsMax;) {
      const head = this.#end > this.#start ? readHead(this.#unused()) : null;
      if (!head) {
        if (!await this.#more()) throw new Error("the server left before it answered");
        continue;
      }
      this.#start += head.length;
      if (head.status === 101) throw new ProtocolError("the server changed the protocol (101)");
      // Those before the last only say that it is on its way.
      if (head.status >= 200) return head;
      interim++;
    }
    throw new ProtocolError(`more than ${interimHeadsMax} heads before an answer`);
  }

  #body(head: Head, forget: () => void): UpstreamBody {
    const framing = framingOf(head);
    // The head itself is not held for as long as its body takes.
    const stays = keepsOpen(head);
    const keepAliveMs = keepAliveOf(head);
    // What mostly comes right after its head is asked for while others look at that.
    if (!framing.done && this.#start === this.#end) this.#readAhead();
    let ended = false;
    const end = (close: boolean) => {
      if (ended) return;
      ended = true;
      forget();
      const reusable = framing.done && stays && !this.#sending && this.#start === this.#end;
      if (close || this.#closed || !reusable) this.close();
      else this.#keeper.keep(this, keepAliveMs);
    };
    const read = async (): Promise<Uint8Array<ArrayBuffer> | null> => {
      if (ended) return null;
      try {
        const piece = await this.#piece(framing);
        if (!piece) end(false);
        return piece;
      } catch (error) {
        end(true);
        throw error;
      }
    };
    return {
      read,
      cancel: () => end(true),
      finish: () => void this.#readRest(read).finally(() => end(true)),
    };
  }

  /** Reads to a near end, so that the connection can be kept. */
  async #readRest(read: UpstreamBody["read"]): Promise<void> {
    const stop = this.#keeper.clock.after(restMs, () => this.close());
    for (let length = 0; length < restBytesMax;) {
      const piece = await read().catch(() => null);
      if (!piece) break;
      length += piece.length;
    }
    stop();
  }

  /** The next of the body; null at its end. */
  async #piece(framing: BodyFraming): Promise<Uint8Array<ArrayBuffer> | null> {
    while (!framing.done) {
      const { used, piece } = framing.take(this.#unused());
      this.#start += used;
      if (piece.length > 0) return piece;
      if (framing.done) break;
      // What fills the buffer is no stream of small pieces.
      const turn = this.#end < this.#buffer.length ? this.#keeper.pace.turn() : null;
      if (turn) await turn;
      if (await this.#more()) continue;
      if (framing.untilClose) break;
      throw new Error("the server left in the middle of its answer");
    }
    return null;
  }

  #unused(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(this.#start, this.#end);
  }

  /** Waits for more; false when nothing more will come. */
  async #more(): Promise<boolean> {
    this.#reading ??= this.#read();
    const length = await this.#reading;
    this.#reading = null;
    this.#end += length ?? 0;
    this.#answered ||= length !== null;
    return length !== null;
  }

  /** Begins a read that nobody waits for yet: whoever does then is told how it failed. */
  #readAhead(): void {
    this.#reading ??= this.#read();
    this.#reading.catch(() => {});
  }

  #read(): Promise<number | null> {
    if (this.#end === this.#buffer.length) this.#makeRoom();
    else if (this.#start === this.#end) this.#start = this.#end = 0;
    return this.#socket.read(this.#buffer.subarray(this.#end));
  }

  /** For more after a buffer that came full, and after the part of a head that filled it. */
  #makeRoom(): void {
    const unused = this.#unused();
    if (unused.length >= headBytesMax) throw new ProtocolError("a head that is too long");
    const length = Math.min(2 * this.#buffer.length, bufferBytesMax);
    const grown = new Uint8Array(Math.max(length, 2 * unused.length));
    grown.set(unused);
    this.#buffer = grown;
    this.#start = 0;
    this.#end = unused.length;
  }
}
