import type { Clock } from "../base/clock.ts";
import type { UpstreamBody, UpstreamResponse } from "../deps.ts";
import { type BodyFraming, framingOf } from "./framing.ts";
import { type Head, keepAliveOf, keepsOpen, ProtocolError, readHead } from "./head.ts";
import type { Pace } from "./pace.ts";

/** The transport of a connection: a `Deno.Conn`, with or without TLS. */
export interface HttpSocket {
  /** Returns null at the end. Rejects when the socket is closed during the read. */
  read(into: Uint8Array): Promise<number | null>;
  write(bytes: Uint8Array): Promise<number>;
  close(): void;
}

/** Keeps connections between two requests. */
export interface ConnectionPool {
  clock: Pick<Clock, "after" | "elapsed">;
  pace: Pace;
  /** Whether responses are read as tolerantly as curl and Go read them. */
  isTolerant?: boolean;
  /** The most that may arrive for one request, in bytes: a longer response is an error. */
  receivedMax?: number;
  /** Takes back a connection for further requests, for this long if its server said so. */
  keep(connection: HttpConnection, keepAliveMs: number | null): void;
}

// A stream that waits for its next event uses no more than this; a faster one gets more.
const bufferBytes = 4 * 1024;
const bufferBytesMax = 64 * 1024;
const headBytesMax = 64 * 1024;
/** The most interim responses before the final one: a server that sends more is disconnected. */
const interimHeadsMax = 16;
/** More microtasks than a completed read takes to reach its reader. */
const microtasksOfRead = 10;
/** How much of an unwanted body is read to keep the connection: bytes, and milliseconds. */
const restBytesMax = 16 * 1024;
const restMs = 1_000;

/** One connection to a server, for one request after another. */
export class HttpConnection {
  readonly #socket: HttpSocket;
  readonly #pool: ConnectionPool;
  #buffer = new Uint8Array(bufferBytes);
  /** Received and unused bytes are between these. */
  #start = 0;
  #end = 0;
  #reading: Promise<number | null> | null = null;
  #sending = false;
  #closed = false;
  #received = 0;

  constructor(socket: HttpSocket, pool: ConnectionPool) {
    this.#socket = socket;
    this.#pool = pool;
  }

  /**
   * Sends a request and reads the response's head; the caller reads the body. Rejects when the
   * server disconnects, does not speak HTTP/1.1, or `signal` is aborted, which closes the
   * connection.
   */
  async request(bytes: Uint8Array, signal: AbortSignal): Promise<UpstreamResponse> {
    const close = () => this.close();
    signal.addEventListener("abort", close, { once: true });
    const forget = () => signal.removeEventListener("abort", close);
    this.#received = 0;
    try {
      signal.throwIfAborted();
      if (this.#reading) await this.#expectSilence();
      // A server may respond before it has read everything, so both run at once.
      this.#send(bytes);
      const head = await this.#readHead();
      return {
        status: head.status,
        header: (name) => head.headers.get(name) ?? null,
        body: this.#body(head, this.#framing(head), forget),
      };
    } catch (error) {
      forget();
      this.close();
      throw error;
    }
  }

  /** Whether anything has arrived since the last request. */
  get answered(): boolean {
    return this.#received > 0;
  }

  /**
   * Calls `react` when the server disconnects or sends something between two requests, or already
   * has.
   */
  onUnexpected(react: () => void): void {
    this.#reading ??= this.#read();
    this.#reading.then(react, react);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#reading?.catch(() => {});
    this.#socket.close();
  }

  /**
   * Rejects when something has arrived since the last response: it would be taken for the response
   * to this request, and each later response for that of the next.
   */
  async #expectSilence(): Promise<void> {
    let isSilent = true;
    const end = () => void (isSilent = false);
    this.#reading?.then(end, end);
    for (let n = 0; n < microtasksOfRead && isSilent; n++) await null;
    if (!isSilent) throw new Error("the server sent data before the request");
  }

  #send(request: Uint8Array): void {
    this.#sending = true;
    const sendAll = async () => {
      for (let sent = 0; sent < request.length;) {
        sent += await this.#socket.write(sent === 0 ? request : request.subarray(sent));
      }
      this.#sending = false;
    };
    // Reading fails too, after what the server sent before it disconnected.
    sendAll().catch(() => {});
  }

  async #readHead(): Promise<Head> {
    for (let interim = 0; interim <= interimHeadsMax;) {
      const head = this.#end > this.#start ? readHead(this.#unused(), this.#pool.isTolerant) : null;
      if (!head) {
        if (!await this.#more()) throw new Error("the server disconnected before it responded");
        continue;
      }
      this.#start += head.length;
      if (head.status === 101) throw new ProtocolError("the server switched protocols (101)");
      // Interim responses (1xx) only announce the final one.
      if (head.status >= 200) return head;
      interim++;
    }
    throw new ProtocolError(`more than ${interimHeadsMax} interim responses`);
  }

  #framing(head: Head): BodyFraming {
    try {
      return framingOf(head, this.#pool.isTolerant);
    } catch (error) {
      if (error instanceof ProtocolError) error.head = head;
      throw error;
    }
  }

  #body(head: Head, framing: BodyFraming, forget: () => void): UpstreamBody {
    // So that the head is not kept in memory while its body is read.
    const stays = keepsOpen(head);
    const keepAliveMs = keepAliveOf(head);
    // The body mostly arrives right after the head, so reading starts while the head is processed.
    if (!framing.done && this.#start === this.#end) this.#readAhead();
    let ended = false;
    const end = (close: boolean) => {
      if (ended) return;
      ended = true;
      forget();
      const reusable = framing.done && stays && !this.#sending && this.#start === this.#end;
      if (close || this.#closed || !reusable) this.close();
      else this.#pool.keep(this, keepAliveMs);
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

  /** Reads the end of the body if it is near, so that the connection can be kept. */
  async #readRest(read: UpstreamBody["read"]): Promise<void> {
    const stop = this.#pool.clock.after(restMs, () => this.close());
    for (let length = 0; length < restBytesMax;) {
      const piece = await read().catch(() => null);
      if (!piece) break;
      length += piece.length;
    }
    stop();
  }

  /** Reads the next chunk of the body; null at its end. */
  async #piece(framing: BodyFraming): Promise<Uint8Array<ArrayBuffer> | null> {
    while (!framing.done) {
      const { used, piece } = framing.take(this.#unused());
      this.#start += used;
      if (piece.length > 0) return piece;
      if (framing.done) break;
      // A read that fills the buffer is not a stream of small events.
      const turn = this.#end < this.#buffer.length ? this.#pool.pace.turn() : null;
      if (turn) await turn;
      if (await this.#more()) continue;
      if (framing.untilClose) break;
      throw new Error("the server disconnected in the middle of its response");
    }
    return null;
  }

  #unused(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(this.#start, this.#end);
  }

  /** Waits for more; false when the server has closed the connection. */
  async #more(): Promise<boolean> {
    this.#reading ??= this.#read();
    const length = await this.#reading;
    this.#reading = null;
    this.#end += length ?? 0;
    this.#received += length ?? 0;
    const { receivedMax = Infinity } = this.#pool;
    if (this.#received > receivedMax) {
      throw new ProtocolError(`the server sent too much: more than ${receivedMax} bytes`);
    }
    return length !== null;
  }

  /** Starts a read that no one waits for yet: whoever waits for it later gets its error. */
  #readAhead(): void {
    this.#reading ??= this.#read();
    this.#reading.catch(() => {});
  }

  #read(): Promise<number | null> {
    if (this.#end === this.#buffer.length) this.#makeRoom();
    else if (this.#start === this.#end) this.#start = this.#end = 0;
    return this.#socket.read(this.#buffer.subarray(this.#end));
  }

  /** Makes space after a read that filled the buffer, and after a partial head that did. */
  #makeRoom(): void {
    const unused = this.#unused();
    if (unused.length >= headBytesMax) throw new ProtocolError("a response head that is too long");
    const length = Math.min(2 * this.#buffer.length, bufferBytesMax);
    const grown = new Uint8Array(Math.max(length, 2 * unused.length));
    grown.set(unused);
    this.#buffer = grown;
    this.#start = 0;
    this.#end = unused.length;
  }
}
