import assert from "node:assert/strict";
import { type RawReceiverOptions, startRawReceiver } from "../support/raw_receiver.ts";
import { startSender } from "../support/sender.ts";
import { subscribe } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

const read = (name: string) =>
  Deno.readTextFileSync(new URL(`../fixtures/tls/receivers/${name}`, import.meta.url));
const tls = { cert: read("valid.pem"), key: read("receiver.key") };
const ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/** A world whose deliveries go over the real network, to a receiver on this machine. */
async function deliverTo(
  answer: RawReceiverOptions["answer"],
  closes: RawReceiverOptions["closes"] = () => false,
) {
  const world = await createWorld({
    env: { WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" },
    sendWebhook: startSender({ caCerts: [read("ca.pem")] }),
  });
  const receiver = startRawReceiver({ tls, answer, closes });
  world.subscriber.names.set("hooks.test", ["127.0.0.1"]);
  await subscribe(world, {
    url: `https://hooks.test:${receiver.port}/`,
    events: ["balance.deposit.created"],
  });
  return {
    world,
    receiver,
    async deposit() {
      await world.deposit("ada", "1");
      await world.app.dispatcher.idle();
      const { body } = await world.json("/v1/webhooks/logs");
      return body.logs[0];
    },
    [Symbol.dispose]() {
      receiver[Symbol.dispose]();
      world[Symbol.dispose]();
    },
  };
}

Deno.test("webhooks: a kept connection that breaks before a response is a counted attempt, and one follows at once", async () => {
  using delivery = await deliverTo((connection, request) =>
    connection === 0 && request === 1 ? null : ok
  );
  assert.equal((await delivery.deposit()).attempts, 1);
  const log = await delivery.deposit();
  assert.deepEqual([log.status, log.attempts], ["success", 2]);
  assert.equal(delivery.receiver.connections, 2);
  const bodies = delivery.receiver.received.map((text) => text.match(/"attempts":\d+/g));
  assert.deepEqual(bodies, [['"attempts":1', '"attempts":1'], ['"attempts":2']]);
});

Deno.test("webhooks: after a kept connection, a new one that breaks too is retried after the usual delay", async () => {
  using delivery = await deliverTo((connection, request) =>
    connection === 0 && request === 0 ? ok : null
  );
  await delivery.deposit();
  const log = await delivery.deposit();
  assert.deepEqual([log.status, log.attempts], ["pending", 2]);
  assert.equal(log.error, "connection_error: the connection closed before a response");
  assert.ok(Date.parse(log.nextRetryAt) > delivery.world.clock.now());
  assert.equal(delivery.receiver.connections, 2);
});

Deno.test("webhooks: a kept connection that breaks within a response is not tried again at once", async () => {
  const second = (connection: number, request: number) => connection === 0 && request === 1;
  using delivery = await deliverTo(
    (connection, request) => second(connection, request) ? "HTTP/1.1 2" : ok,
    second,
  );
  await delivery.deposit();
  const log = await delivery.deposit();
  assert.deepEqual([log.status, log.attempts], ["pending", 1]);
  assert.equal(delivery.receiver.connections, 1);
});
