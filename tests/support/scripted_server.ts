import type { Connect } from "../../src/http/client.ts";
import type { ServerAddress } from "../../src/http/server_address.ts";
import type { HttpSocket } from "../../src/http/connection.ts";

/** A request as a scripted server received it, whole. */
export interface ScriptedRequest {
  url: string;
  method: string;
  headers: Headers;
  body: string;
  /** The body as it was sent. */
  bytes: Uint8Array<ArrayBuffer>;
  /** Aborted when the client closes the connection before it has read the whole response. */
  signal: AbortSignal;
}

export interface ScriptedServer {
  /** A rejection closes the connection without a response. A body that fails cuts it off. */
  respond(request: ScriptedRequest): Promise<Response>;
  /** Rejects when no connection can be made. */
  accept?(server: ServerAddress): Promise<void>;
  /** Whether the client may keep the connection for its next request; asked with each response. */
  keepAlive?(): boolean;
  /** Whether a kept connection is closed instead of reading the next request on it. */
  dropKept?(): boolean;
}

/**
 * Connects the real HTTP client to a server in memory, which sends `respond`'s responses as
 * HTTP/1.1 bytes. A body is read only as fast as the client reads it.
 */
export function connectToScript(script: ScriptedServer): Connect {
  return async (server, signal) => {
    await script.accept?.(server);
    signal.throwIfAborted();
    return new ScriptedSocket(server, script);
  };
}

type Body = ReadableStreamDefaultReader<Uint8Array>;

class ScriptedSocket implements HttpSocket {
  readonly #server: ServerAddress;
  readonly #script: ScriptedServer;
  #received = new Uint8Array();
  #unread = new Uint8Array();
  /** The response under way: its body, once its head has been sent. */
  #body: Body | null = null;
  #abort: AbortController | null = null;
  #kept = false;
  #ended = false;
  #closed = Promise.withResolvers<never>();
  /** Resolves when there is something to read for a client that waits without a request. */
  #wake = Promise.withResolvers<void>();

  constructor(server: ServerAddress, script: ScriptedServer) {
    this.#server = server;
    this.#script = script;
    this.#closed.promise.catch(() => {});
  }

  write(bytes: Uint8Array): Promise<number> {
    this.#received = joined(this.#received, bytes);
    if (this.#kept && this.#script.dropKept?.()) {
      this.close();
      return Promise.resolve(bytes.length);
    }
    const request = this.#takeRequest();
    if (request) this.#respond(request);
    return Promise.resolve(bytes.length);
  }

  async read(into: Uint8Array): Promise<number | null> {
    for (;;) {
      if (this.#unread.length > 0) {
        const piece = this.#unread.subarray(0, into.length);
        into.set(piece);
        this.#unread = this.#unread.subarray(piece.length);
        return piece.length;
      }
      if (this.#ended) return null;
      const more = this.#body ? this.#readBody(this.#body) : this.#wake.promise;
      await Promise.race([more, this.#closed.promise]);
    }
  }

  close(): void {
    this.#closed.reject(new Error("the connection is closed"));
    this.#abort?.abort(new DOMException("the client left", "AbortError"));
    this.#body?.cancel().catch(() => {});
    this.#body = null;
  }

  /** The client sends one request at a time, with its length. */
  #takeRequest(): ScriptedRequest | null {
    const text = new TextDecoder().decode(this.#received);
    const headEnd = text.indexOf("\r\n\r\n");
    if (headEnd < 0) return null;
    const [requestLine = "", ...lines] = text.slice(0, headEnd).split("\r\n");
    const headers = new Headers(lines.map((line): [string, string] => {
      const colon = line.indexOf(":");
      return [line.slice(0, colon), line.slice(colon + 1).trim()];
    }));
    // A head is ASCII, so its characters are its bytes.
    const body = this.#received.subarray(headEnd + 4);
    if (body.length < Number(headers.get("content-length") ?? 0)) return null;
    this.#received = new Uint8Array();
    const [method = "", path = ""] = requestLine.split(" ");
    const scheme = this.#server.secure ? "https" : "http";
    this.#abort = new AbortController();
    return {
      url: `${scheme}://${headers.get("host")}${path}`,
      method,
      headers,
      body: new TextDecoder().decode(body),
      bytes: body.slice(),
      signal: this.#abort.signal,
    };
  }

  #respond(request: ScriptedRequest): void {
    this.#script.respond(request).then((response) => {
      if (request.signal.aborted) return void response.body?.cancel();
      this.#kept = this.#script.keepAlive?.() ?? false;
      this.#send(headOf(response, this.#kept));
      if (response.body) this.#body = response.body.getReader();
      else this.#endResponse();
      this.#wake.resolve();
      this.#wake = Promise.withResolvers();
    }, (error) => this.#closed.reject(error));
  }

  async #readBody(body: Body): Promise<void> {
    const { done, value } = await body.read();
    if (done) {
      this.#body = null;
      this.#send("0\r\n\r\n");
      this.#endResponse();
    } else if (value.length > 0) {
      this.#send(`${value.length.toString(16)}\r\n`, value, "\r\n");
    }
  }

  #endResponse(): void {
    this.#abort = null;
    this.#ended = !this.#kept;
  }

  #send(...parts: (string | Uint8Array)[]): void {
    for (const part of parts) {
      const bytes = typeof part === "string" ? new TextEncoder().encode(part) : part;
      this.#unread = joined(this.#unread, bytes);
    }
  }
}

function headOf(response: Response, keepAlive: boolean): string {
  const lines = [`HTTP/1.1 ${response.status} ${response.statusText || "Status"}`];
  for (const [name, value] of response.headers) {
    if (name !== "content-length") lines.push(`${name}: ${value}`);
  }
  if (response.body) lines.push("transfer-encoding: chunked");
  else if (response.status !== 204 && response.status !== 304) lines.push("content-length: 0");
  if (!keepAlive) lines.push("connection: close");
  return `${lines.join("\r\n")}\r\n\r\n`;
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(one.length + other.length);
  whole.set(one);
  whole.set(other, one.length);
  return whole;
}
