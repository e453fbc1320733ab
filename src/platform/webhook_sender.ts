import { BoundedMap } from "../base/bounded_map.ts";
import type { Clock } from "../base/clock.ts";
import type { Deps, UpstreamBody, WebhookHttpRequest, WebhookHttpResponse } from "../deps.ts";
import { encodeRequest } from "../http/client.ts";
import type { ServerAddress } from "../http/server_address.ts";
import { AllAddressesFailed, connectToFirst } from "../http/connect_first.ts";
import { HttpConnection } from "../http/connection.ts";
import {
  AddressError,
  addressesFailed,
  type ConnectFailure,
  responseFailed,
} from "../http/delivery_faults.ts";
import { ProtocolError } from "../http/head.ts";
import { IdleConnections } from "../http/idle_connections.ts";
import { Pace } from "../http/pace.ts";
import type { FindProxy } from "../http/proxy.ts";
import { isHandshakeFailure, isUnknownIssuer } from "../http/tls_error.ts";
import { createConnect } from "./connect.ts";
import { isSelfSigned, wantsClientCertificate } from "./tls_probe.ts";

/** How much of a response's body is read, and how much of that is kept, in bytes. */
const bodyReadMax = 16 * 1024;
const bodyKeptMax = 1024;
/**
 * The most that may arrive for one request, in bytes: including what is not part of a response,
 * such as interim responses, chunk extensions and trailers.
 */
const receivedMax = 128 * 1024;
/** How many servers' connections are kept: a server is a name at an address. */
const serversMax = 1_000;
const idleMs = 30_000;
/**
 * How many idle connections are kept: as many as one subscription uses at once, because a handshake
 * costs more than the rest of a delivery.
 */
const idleMax = 64;

/** What a sender of webhooks works with. */
export interface WebhookSenderOptions {
  clock: Pick<Clock, "after" | "elapsed">;
  /** Authorities, in PEM, that are trusted besides the usual ones. */
  caCerts?: string[];
  /** The proxy to a receiver's name; none by default. */
  findProxy?: FindProxy;
}

/**
 * Creates the sender of webhooks. It connects to exactly the addresses that were checked, one after
 * the other until one works, and verifies the certificate against the name. Once the request is
 * being sent, it is sent to no other address, and nothing is sent twice.
 */
export function createWebhookSender(
  { clock, caCerts = [], findProxy = () => null }: WebhookSenderOptions,
): Deps["sendWebhook"] {
  const connect = createConnect(caCerts);
  const shared = { clock, pace: new Pace(clock), isTolerant: true, receivedMax };
  const servers = new BoundedMap<string, IdleConnections>(serversMax, {
    onForgotten: (idle) => idle.close(),
  });
  const newServer = () => new IdleConnections(shared, { idleMs, idleMax });

  /** Connections are kept per name and address: none is used for a name it was not checked for. */
  const idleOf = (origin: string, address: string) =>
    servers.getOrMake(`${origin} ${address}`, newServer);

  function takeIdle({ url, addresses, newConnection }: WebhookHttpRequest): HttpConnection | null {
    if (newConnection) return null;
    for (const address of addresses) {
      const connection = servers.get(`${url.origin} ${address}`)?.take();
      if (connection) return connection;
    }
    return null;
  }

  async function connectNew({ url, addresses, signal }: WebhookHttpRequest) {
    const server = serverOf(url);
    // Plain HTTP only goes to this machine, in development.
    const proxy = server.secure ? findProxy(server) ?? undefined : undefined;
    try {
      const { address, connected } = await connectToFirst(addresses, {
        clock,
        signal,
        async connectTo(address, signal, onReached) {
          let stage: ConnectFailure["stage"] = "tcp";
          const reached = () => {
            stage = "tls";
            onReached();
          };
          try {
            return await connect({ ...server, address }, signal, proxy, reached);
          } catch (error) {
            throw new AddressError({ address, stage, isByProxy: proxy !== undefined, error });
          }
        },
      });
      return new HttpConnection(connected, idleOf(url.origin, address));
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof AllAddressesFailed)) throw error;
      throw await addressesFailed(error, (failure) => explain(server, failure, signal));
    }
  }

  return async (request) => {
    const { url, headers, body, signal, onProgress } = request;
    const bytes = encodeRequest(
      { method: "POST", headers, body },
      ` ${url.pathname}${url.search} HTTP/1.1\r\nhost: ${url.host}\r\n`,
    );
    const kept = takeIdle(request);
    const connection = kept ?? await connectNew(request);
    const start = new BodyStart();
    let status: number | null = null;
    const onHead = (head: Pick<WebhookHttpResponse, "status" | "retryAfter">) => {
      status = head.status;
      onProgress?.({ head });
      return head;
    };
    try {
      onProgress?.({ sent: true });
      const { status, header, body } = await connection.request(bytes, signal);
      const head = onHead({ status, retryAfter: header("retry-after") });
      await start.read(body);
      return { ...head, bodyHead: start.text };
    } catch (error) {
      signal.throwIfAborted();
      const head = error instanceof ProtocolError ? error.head : null;
      if (head) {
        onHead({ status: head.status, retryAfter: head.headers.get("retry-after") ?? null });
      }
      throw responseFailed(error, {
        status,
        bodyHead: status === null ? null : start.text,
        isStale: kept !== null && !connection.answered,
        isPartial: connection.answered,
      });
    }
  };
}

function serverOf({ protocol, hostname, port }: URL): ServerAddress {
  const secure = protocol === "https:";
  return {
    hostname: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: Number(port) || (secure ? 443 : 80),
    secure,
  };
}

/** Finds out more about a failed handshake; null where there is nothing more to know. */
async function explain(
  server: ServerAddress,
  { address, stage, isByProxy, error }: ConnectFailure,
  signal: AbortSignal,
): Promise<string | null> {
  if (stage !== "tls" || isByProxy) return null;
  const probed = { ...server, address };
  if (isUnknownIssuer(error) && await isSelfSigned(probed, signal)) {
    return "the certificate is self-signed";
  }
  if (isHandshakeFailure(error) && await wantsClientCertificate(probed, signal)) {
    return "the receiver wants a client certificate";
  }
  return null;
}

/** The start of a response's body. */
class BodyStart {
  readonly #bytes = new Uint8Array(bodyKeptMax);
  #length = 0;

  /** Reads a body; one that is too long is cut off, which closes its connection. */
  async read(body: UpstreamBody): Promise<void> {
    let read = 0;
    for (let piece = await body.read(); piece; piece = await body.read()) {
      const kept = piece.subarray(0, bodyKeptMax - this.#length);
      this.#bytes.set(kept, this.#length);
      this.#length += kept.length;
      read += piece.length;
      if (read >= bodyReadMax) return body.cancel();
    }
  }

  get text(): string {
    return new TextDecoder().decode(this.#bytes.subarray(0, this.#length));
  }
}
