import assert from "node:assert/strict";
import { serviceSignature } from "../../src/webhooks/delivery/signature.ts";
import type { Body } from "./world.ts";

const tls = (name: string) => new URL(`../fixtures/tls/${name}`, import.meta.url);

/** The certificate of the authority that signed the receiver's. */
export const caPath = tls("ca.pem").pathname;

/** A subscriber's server over TLS, for the name `localhost`, with a ledger of deliveries. */
export interface Receiver extends AsyncDisposable {
  url: string;
  port: number;
  /** By event id: how often it arrived. */
  events: Map<string, number>;
  /** By activity id: the events about it. */
  activities: Map<string, Set<string>>;
  /** Requests with an invalid signature. */
  forged: number;
  /** The secret that must sign every request, once it is known. */
  secret: string | null;
  /** How requests are answered; 200 by default. */
  answer: (body: Body, request: Request) => Response | Promise<Response>;
}

/** Starts a receiver. */
export function startReceiver(): Receiver {
  const server = Deno.serve({
    hostname: "127.0.0.1",
    port: 0,
    cert: Deno.readTextFileSync(tls("server.pem")),
    key: Deno.readTextFileSync(tls("server.key")),
    onListen() {},
  }, async (request) => {
    const raw = await request.text();
    const signature = request.headers.get("x-service-signature");
    if (receiver.secret && signature !== serviceSignature(receiver.secret, raw)) receiver.forged++;
    const body = JSON.parse(raw);
    const { id, data } = body.event;
    receiver.events.set(id, (receiver.events.get(id) ?? 0) + 1);
    const about = receiver.activities.get(data.activityId) ?? new Set();
    receiver.activities.set(data.activityId, about.add(id));
    return await receiver.answer(body, request);
  });
  assert.equal(server.addr.transport, "tcp");
  const { port } = server.addr as Deno.NetAddr;
  const receiver: Receiver = {
    url: `https://localhost:${port}/hook`,
    port,
    events: new Map(),
    activities: new Map(),
    forged: 0,
    secret: null,
    answer: () => new Response("ok"),
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
  return receiver;
}

/** The environment in which a service may reach receivers on this machine. */
export const receiverEnv = {
  WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8,::1/128",
  DENO_CERT: caPath,
};
