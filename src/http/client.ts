import { BoundedMap } from "../base/bounded_map.ts";
import { encodeUtf8, utf8Length } from "../base/utf8.ts";
import type { RequestUpstream, UpstreamRequest } from "../deps.ts";
import { type ConnectionPool, HttpConnection, type HttpSocket } from "./connection.ts";
import { IdleConnections } from "./idle_connections.ts";
import { Pace } from "./pace.ts";
import type { FindProxy, HttpProxy } from "./proxy.ts";
import type { ServerAddress } from "./server_address.ts";

/**
 * Connects to a server, by TLS where it is secure; with a proxy, through a tunnel. Resolves once
 * the connection is ready for a request. Rejects when that fails, or `signal` is aborted. Calls
 * `onReached` when the server has accepted the TCP connection and only TLS is missing.
 */
export type Connect = (
  server: ServerAddress,
  signal: AbortSignal,
  proxy?: HttpProxy,
  onReached?: () => void,
) => Promise<HttpSocket>;

// Many servers close idle connections after 5 s, and a request under way at that moment would be
// lost. Behind TLS there are mostly proxies, which keep connections longer and cost a handshake
// each.
const idleMs = 4_000;
const idleSecureMs = 30_000;
/** The most idle connections to one server. */
const idleMax = 1_000;
const targetsMax = 1_000;
/** The most servers, and keys of one server, whose connections are kept. */
const poolsMax = 1_000;

/** A URL, prepared for requests to it. */
interface Target {
  /** Where to connect: the server, or the proxy that forwards plain requests. */
  server: ServerAddress;
  /** The proxy to open a tunnel through. */
  tunnel: HttpProxy | undefined;
  /** The request's first lines, after the method. */
  lines: string;
  pools: KeyPools;
}

/** The idle connections to one server, by the key of the requests on them. */
type KeyPools = BoundedMap<string, IdleConnections>;

/** If a kept connection fails this soon after a request, its server had already closed it. */
const staleMs = 1_000;

/**
 * An HTTP/1.1 client with pooled connections, one request at a time on each. It follows no
 * redirects and requests no compression. It sends nothing twice, with one exception, which curl
 * makes too: when a pooled connection closes at once, without a byte of a response, its server was
 * just closing it. `fetch` would cost a chat as much CPU as the whole ledger, and would multiplex
 * all responses of a server on one HTTP/2 connection. No connection serves two keys: were its
 * responses ever out of step, one project would read another's. `findProxy` tells which servers are
 * reached through a proxy.
 */
export function createHttpClient(
  connect: Connect,
  clock: ConnectionPool["clock"],
  findProxy: FindProxy = () => null,
): RequestUpstream {
  const shared = { clock, pace: new Pace(clock) };
  const targets = new BoundedMap<string, Target>(targetsMax);
  const servers = new BoundedMap<string, KeyPools>(poolsMax, {
    onForgotten(pools) {
      pools.forEach((pool) => pool.close());
      targets.clear();
    },
  });
  const newPools = (): KeyPools =>
    new BoundedMap(poolsMax, { onForgotten: (pool) => pool.close() });

  function poolOf({ pools, server: { secure } }: Target, key: string): IdleConnections {
    return pools.getOrMake(key, () => {
      return new IdleConnections(shared, { idleMs: secure ? idleSecureMs : idleMs, idleMax });
    });
  }

  function newTarget(text: string): Target {
    const { protocol, hostname, port, host, origin, pathname, search } = new URL(text);
    const secure = protocol === "https:";
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
    return {
      server: forwards ? { ...proxy, secure: false } : server,
      tunnel: secure ? proxy ?? undefined : undefined,
      lines: ` ${path} HTTP/1.1\r\nhost: ${host}\r\nuser-agent: Farebox\r\n${credentials}`,
      pools: servers.getOrMake(origin, newPools),
    };
  }

  return async (request) => {
    const target = targets.getOrMake(request.url, newTarget);
    const { server, tunnel, lines } = target;
    const idle = poolOf(target, keyOf(request.headers));
    const bytes = encodeRequest(request, lines);
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
    const { owner } = request;
    const to = owner === undefined ? server : { ...server, owner };
    const connection = new HttpConnection(await connect(to, signal, tunnel), idle);
    onSend?.(true);
    return await connection.request(bytes, signal);
  };
}

/** The key of a request, in whichever header its server expects it. */
function keyOf(
  { authorization, "x-api-key": other, "api-key": azure }: UpstreamRequest["headers"],
) {
  return authorization ?? other ?? azure ?? "";
}

const sendable = /^[\t\x20-\x7e]*$/;

/**
 * Encodes a request: its method, its first lines, its headers and its body. Throws for a header
 * value that would start another header.
 */
export function encodeRequest(
  { method, headers, body }: Pick<UpstreamRequest, "method" | "headers" | "body">,
  lines: string,
): Uint8Array {
  let head = method + lines;
  for (const [name, value] of Object.entries(headers)) {
    if (!sendable.test(value)) {
      throw new Error(`the header ${name} contains characters that cannot be sent`);
    }
    head += `${name}: ${value}\r\n`;
  }
  if (body === null) return encodeUtf8(`${head}\r\n`);
  if (typeof body !== "string") {
    const start = encodeUtf8(`${head}content-length: ${body.length}\r\n\r\n`);
    const bytes = new Uint8Array(start.length + body.length);
    bytes.set(start);
    bytes.set(body, start.length);
    return bytes;
  }
  return encodeUtf8(`${head}content-length: ${utf8Length(body)}\r\n\r\n${body}`);
}
