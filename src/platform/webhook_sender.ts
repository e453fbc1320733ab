import { Buffer } from "node:buffer";
import http from "node:http";
import https from "node:https";
import { isIP, type LookupFunction, type Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { WebhookHttpRequest, WebhookHttpResponse } from "../deps.ts";

/** How much of a response's body is read, and how much of that is kept, in bytes. */
const bodyReadMax = 16 * 1024;
const bodyKeptMax = 1024;
/**
 * The most that may arrive for one request, in bytes: including what is not part of a response,
 * such as endless
 * 103s before it, or chunk extensions.
 */
const receivedMax = 128 * 1024;
/** The most interim responses before the final one: each is small, and takes its time. */
const interimHeadsMax = 16;
/** How many lines are kept, as long as some of them are idle. */
const linesMax = 1_000;
const idleSocketMs = 30_000;
/** As many as one subscription uses at once: a handshake costs more than the rest of a delivery. */
const freeSocketsMax = 64;

/**
 * Requests only the leaf of the peer's certificates, which is all that the check of its name reads.
 * The handshake verifies the chain before. To list the chain, Deno would parse all trusted
 * authorities for each connection: 20 ms of 24.
 */
class LeafAgent extends https.Agent {
  override createConnection(
    ...given: Parameters<https.Agent["createConnection"]>
  ): ReturnType<https.Agent["createConnection"]> {
    const socket = super.createConnection(...given);
    if (socket instanceof TLSSocket) {
      const getPeer = socket.getPeerCertificate;
      const leaf = () => getPeer.call(socket, false);
      Object.defineProperty(socket, "getPeerCertificate", { value: leaf });
    }
    return socket;
  }
}

/**
 * Posts over `node:https`, which connects to the exact address that `lookup` returns, and still
 * checks the certificate against the name. `fetch` cannot do that, and would follow redirects.
 * `ca`, in PEM, is trusted instead of the usual authorities.
 */
export function createWebhookSender(
  ca: string | null = null,
): (request: WebhookHttpRequest) => Promise<WebhookHttpResponse> {
  const lines = new Map<string, Line>();

  /** Connections are kept per name and address: none is used for a name it was not checked for. */
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
      // Deno's own flag for a request that is a retry: without it, Deno repeats by itself what
      // fails on a kept connection, which would not be counted as an attempt.
      Object.assign(request, { _retrying: true });
      line.underWay++;
      request.once("close", () => line.underWay--);
      let answer: http.IncomingMessage | null = null;
      request.on("error", (error) => {
        // What follows a complete response, such as a body after a 204, is not part of it.
        const isParsing = String(Reflect.get(error, "code")).startsWith("HPE_");
        if (!(isParsing && answer?.complete)) reject(error);
      });
      request.once("socket", (socket) => limitReceived(request, socket));
      // A switch of protocols is not a response, and never leads to one.
      request.once("upgrade", (_response, socket) => {
        socket.destroy();
        reject(new Error("the receiver switched protocols (101)"));
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
  /** Requests that have not ended: closing their connections would fail them. */
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
  const disconnect = () => request.destroy(new Error("the receiver sent too much"));
  let received = 0;
  const count = ({ length }: Uint8Array) => {
    received += length;
    if (received > receivedMax) disconnect();
  };
  let interim = 0;
  request.on("information", () => {
    interim++;
    if (interim > interimHeadsMax) disconnect();
  });
  socket.on("data", count);
  request.once("close", () => socket.off("data", count));
}

/** Reads the start of a body; a longer one is cut off, which closes its connection. */
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
