import { Buffer } from "node:buffer";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { WebhookHttpRequest, WebhookHttpResponse } from "../deps.ts";

/** Most that is read of an answer's body, and what is kept of it, in bytes. */
const bodyReadMax = 16 * 1024;
const bodyKeptMax = 1024;
/**
 * Most that may come for one request, in bytes: also what is no part of an answer, such as endless
 * 103s before it, or what extends a chunk.
 */
const receivedMax = 128 * 1024;
/** Most heads before the one that answers: many of them are small, and each takes its time. */
const interimHeadsMax = 16;
/** Most lines that are kept, as long as some of them are idle. */
const linesMax = 1_000;
const idleSocketMs = 30_000;
/** As many as one subscription uses at once: a handshake costs more than all else of a delivery. */
const freeSocketsMax = 64;

/**
 * Asks for the leaf of a peer's certificates alone, which is all that the check of its name reads.
 * The chain is verified before, by the handshake itself; to list it for us, Deno would parse every
 * authority it trusts anew for each connection: 20 ms of 24.
 */
class LeafAgent extends https.Agent {
  override createConnection(
    ...given: Parameters<https.Agent["createConnection"]>
  ): ReturnType<https.Agent["createConnection"]> {
    const socket = super.createConnection(...given);
    if (socket instanceof TLSSocket) {
      const ask = socket.getPeerCertificate;
      const leaf = () => ask.call(socket, false);
      Object.defineProperty(socket, "getPeerCertificate", { value: leaf });
    }
    return socket;
  }
}

/**
 * Posts over `node:https`, which connects to the very address that `lookup` gives, and still
 * checks the certificate against the name. `fetch` cannot do that, and would follow redirects.
 * `ca`, in PEM, is trusted instead of the usual authorities.
 */
export function createWebhookSender(
  ca: string | null = null,
): (request: WebhookHttpRequest) => Promise<WebhookHttpResponse> {
  const lines = new Map<string, Line>();

  /**
   * Connections are kept for one name and address: none is used for a name it was not vetted for.
   */
  function lineTo(url: URL, address: string): Line {
    const name = `${url.origin} ${address}`;
    const known = lines.get(name);
    if (known) return known;
    if (lines.size >= linesMax) endOldestIdle(lines);
    const options = { keepAlive: true, timeout: idleSocketMs, maxFreeSockets: freeSocketsMax };
    const agent = url.protocol === "https:"
      ? new LeafAgent({ ...options, ...(ca === null ? {} : { ca }) })
      : new http.Agent(options);
    const made = { agent, underWay: 0 };
    lines.set(name, made);
    return made;
  }

  return ({ url, addresses, headers, body, signal }) => {
    const [address] = addresses;
    if (!address) throw new Error("no address to connect to");
    const lookup: LookupFunction = (_host, options, done) => {
      const family = isIP(address);
      if (options.all) done(null, [{ address, family }]);
      else done(null, address, family);
    };
    const bytes = Buffer.from(body);
    const line = lineTo(url, address);
    const start = url.protocol === "https:" ? https.request : http.request;
    return new Promise((resolve, reject) => {
      const request = start(url, {
        method: "POST",
        agent: line.agent,
        lookup,
        signal,
        headers: { ...headers, "content-length": String(bytes.length) },
      });
      // Deno's own mark of one that was sent again: of itself it sends what breaks, or is given up,
      // on a kept connection once more, which nobody would have counted as an attempt.
      Object.assign(request, { _retrying: true });
      line.underWay++;
      request.once("close", () => line.underWay--);
      let answer: http.IncomingMessage | null = null;
      request.on("error", (error) => {
        // What comes behind a whole answer, such as a body behind a 204, is no part of it.
        const isParsing = String(Reflect.get(error, "code")).startsWith("HPE_");
        if (!(isParsing && answer?.complete)) reject(error);
      });
      request.once("socket", (socket) => limitReceived(request, socket));
      // Another protocol is no answer, and would never be one.
      request.once("upgrade", (_response, socket) => {
        socket.destroy();
        reject(new Error("the receiver changed the protocol (101)"));
      });
      request.once("response", (response) => {
        answer = response;
        readHead(response).then((bodyHead) =>
          resolve({
            status: response.statusCode ?? 0,
            retryAfter: response.headers["retry-after"] ?? null,
            bodyHead,
          }), reject);
      });
      request.end(bytes);
    });
  };
}

/** The connections to one name at one address. */
interface Line {
  agent: http.Agent;
  /** Requests that have not ended: to end their connections would fail them. */
  underWay: number;
}

function endOldestIdle(lines: Map<string, Line>): void {
  for (const [name, { agent, underWay }] of lines) {
    if (underWay > 0) continue;
    agent.destroy();
    lines.delete(name);
    return;
  }
}

function limitReceived(request: http.ClientRequest, socket: Socket): void {
  const leave = () => request.destroy(new Error("the receiver sent too much"));
  let received = 0;
  const count = ({ length }: Uint8Array) => {
    received += length;
    if (received > receivedMax) leave();
  };
  let interim = 0;
  request.on("information", () => {
    interim++;
    if (interim > interimHeadsMax) leave();
  });
  socket.on("data", count);
  request.once("close", () => socket.off("data", count));
}

/** The head of a body; a long one is broken off, which ends its connection. */
async function readHead(response: http.IncomingMessage): Promise<string> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response) {
    chunks.push(chunk);
    length += chunk.length;
    if (length >= bodyReadMax) break;
  }
  return new TextDecoder().decode(Buffer.concat(chunks).subarray(0, bodyKeptMax));
}
