import { encodeUtf8, utf8Length } from "../base/utf8.ts";
import type { RequestUpstream, UpstreamRequest } from "../deps.ts";
import { type ConnectionPool, HttpConnection, type HttpSocket } from "./connection.ts";
import { Pace } from "./pace.ts";
import type { FindProxy, HttpProxy } from "./proxy.ts";

/** The address of a server. */
export interface ServerAddress {
  hostname: string;
  port: number;
  secure: boolean;
}

/**
 * Connects to a server, by TLS where it is secure; with a proxy, through a tunnel. Resolves once
 * the connection is ready for a request. Rejects when that fails, or `signal` is aborted.
 */
export type Connect = (
  server: ServerAddress,
  signal: AbortSignal,
  proxy?: HttpProxy,
) => Promise<HttpSocket>;

// Many servers close idle connections after 5 s, and a request under way at that moment would be
// lost. Behind TLS there are mostly proxies, which keep connections longer and cost a handshake
// each.
const idleMs = 4_000;
const idleSecureMs = 30_000;
/** The server's keep-alive time counts from its response, which may have arrived this late. */
const keepAliveSlackMs = 1_000;
/** The most idle connections to one server. */
const idleMax = 1_000;
const targetsMax = 1_000;

/** A URL, prepared for requests to it. */
interface Target {
  /** Where to connect: the server, or the proxy that forwards plain requests. */
  server: ServerAddress;
  /** The proxy to open a tunnel through. */
  tunnel: HttpProxy | undefined;
  /** The request's first lines, after the method. */
  lines: string;
  idle: IdleConnections;
}

/** If a kept connection fails this soon after a request, its server had already closed it. */
const staleMs = 1_000;

/**
 * An HTTP/1.1 client with pooled connections, one request at a time on each. It follows no
 * redirects and requests no compression. It sends nothing twice, with one exception, which curl
 * makes too: when a pooled connection closes at once, without a byte of a response, its server was
 * just closing it. `fetch` would cost a chat as much CPU as the whole ledger, and would multiplex
 * all responses of a server on one HTTP/2 connection. `findProxy` tells which servers are reached
 * through a proxy.
 */
export function createHttpClient(
  connect: Connect,
  clock: ConnectionPool["clock"],
  findProxy: FindProxy = () => null,
): RequestUpstream {
  const shared = { clock, pace: new Pace(clock) };
  const targets = new Map<string, Target>();
  const idle = new Map<string, IdleConnections>();

  function targetOf(text: string): Target {
    const known = targets.get(text);
    if (known) return known;
    const { protocol, hostname, port, host, origin, pathname, search } = new URL(text);
    const secure = protocol === "https:";
    const connections = idle.get(origin) ??
      new IdleConnections(shared, secure ? idleSecureMs : idleMs);
    idle.set(origin, connections);
    const server = {
      // An IPv6 address has brackets only in a URL.
      hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
      port: Number(port) || (secure ? 443 : 80),
      secure,
    };
    const proxy = findProxy(server);
    const forwards = proxy !== null && !secure;
    const credentials = forwards && proxy.authorization
      ? `proxy-authorization: ${proxy.authorization}\r\n`
      : "";
    // A proxy needs the whole URL of a plain request (RFC 9112, section 3.2.2).
    const path = `${forwards ? origin : ""}${pathname}${search}`;
    const target = {
      server: forwards ? { ...proxy, secure: false } : server,
      tunnel: secure ? proxy ?? undefined : undefined,
      lines: ` ${path} HTTP/1.1\r\nhost: ${host}\r\nuser-agent: Farebox\r\n${credentials}`,
      idle: connections,
    };
    if (targets.size >= targetsMax) targets.clear();
    targets.set(text, target);
    return target;
  }

  return async (request) => {
    const { server, tunnel, lines, idle } = targetOf(request.url);
    const bytes = encode(request, lines);
    const { signal, onSend } = request;
    const kept = idle.take();
    const sentAt = clock.elapsed();
    if (kept) {
      onSend?.(true);
      try {
        return await kept.request(bytes, signal);
      } catch (error) {
        const isStale = !kept.answered && clock.elapsed() - sentAt < staleMs;
        if (!isStale || signal.aborted) throw error;
        onSend?.(false);
      }
    }
    const connection = new HttpConnection(await connect(server, signal, tunnel), idle);
    onSend?.(true);
    return await connection.request(bytes, signal);
  };
}

/** A connection without a request. */
interface Idle {
  connection: HttpConnection;
  waits: boolean;
  /** Cancels its idle timeout. */
  stop(): void;
}

/** The idle connections to one server. */
class IdleConnections implements ConnectionPool {
  readonly clock: ConnectionPool["clock"];
  readonly pace: ConnectionPool["pace"];
  readonly #idleMs: number;
  readonly #stack: Idle[] = [];

  constructor({ clock, pace }: Pick<ConnectionPool, "clock" | "pace">, idleMs: number) {
    this.clock = clock;
    this.pace = pace;
    this.#idleMs = idleMs;
  }

  /** Takes the one that was used last: its server is the least likely to be closing it. */
  take(): HttpConnection | null {
    const idle = this.#stack.pop();
    if (!idle) return null;
    idle.waits = false;
    idle.stop();
    return idle.connection;
  }

  keep(connection: HttpConnection, keepAliveMs: number | null): void {
    const ms = Math.min(this.#idleMs, (keepAliveMs ?? Infinity) - keepAliveSlackMs);
    if (ms <= 0 || this.#stack.length >= idleMax) return connection.close();
    const drop = () => {
      if (!idle.waits) return;
      idle.waits = false;
      idle.stop();
      this.#stack.splice(this.#stack.indexOf(idle), 1);
      connection.close();
    };
    const idle: Idle = { connection, waits: true, stop: this.clock.after(ms, drop) };
    this.#stack.push(idle);
    connection.onUnexpected(drop);
  }
}

const sendable = /^[\t\x20-\x7e]*$/;

/** Encodes a request. Throws for a header value that would start another header. */
function encode({ method, headers, body }: UpstreamRequest, lines: string): Uint8Array {
  let head = method + lines;
  for (const [name, value] of Object.entries(headers)) {
    if (!sendable.test(value)) {
      throw new Error(`the header ${name} contains characters that cannot be sent`);
    }
    head += `${name}: ${value}\r\n`;
  }
  if (body === null) return encodeUtf8(`${head}\r\n`);
  return encodeUtf8(`${head}content-length: ${utf8Length(body)}\r\n\r\n${body}`);
}
