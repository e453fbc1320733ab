import assert from "node:assert/strict";
import { eventTypes } from "../../src/events/catalogue.ts";
import { deliver, operate, subscribe } from "../support/webhooks.ts";
import { createWorld } from "../support/world.ts";

Deno.test("test events: an example of every type is sent to one subscription, signed as others are", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world, { events: ["balance.*"] });
  await subscribe(world, { url: "https://crm.example.com/in", events: ["*"] });
  for (const type of eventTypes) {
    const { status, body } = await world.json(`/v1/webhooks/subscriptions/${id}/test`, {
      body: { type },
    });
    assert.equal(status, 202, JSON.stringify(body));
    await deliver(world);
    const { body: sent, headers } = world.subscriber.received.at(-1) ?? assert.fail(type);
    assert.deepEqual([sent.event.type, sent.event.metadata], [type, { test: true }]);
    assert.deepEqual([sent.event.id, sent.delivery.id], [body.event.id, body.delivery.id]);
    assert.match(headers["webhook-signature"] ?? "", /^v1,/);
  }
  assert.equal(world.subscriber.received.length, eventTypes.length, "nobody else gets them");
});

Deno.test("test events: an unknown type, an inactive and an unknown subscription are refused", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world);
  const test = (of: string, type = "updated") =>
    operate(world, `/subscriptions/${of}/test`, { body: { type } });
  const wrong = await test(id, "balance.deplete");
  assert.equal(wrong.status, 400);
  assert.match(wrong.body.error.message, /closest is 'balance\.depleted'/);
  assert.equal((await test("sub_01K9Z0C8Q4R7T2V5X8Z1B3D5F7")).status, 404);
  assert.equal((await test(id)).status, 202);
  await world.json(`/v1/webhooks/subscriptions/${id}`, { method: "DELETE" });
  assert.match((await test(id)).body.error.message, /inactive/);
  const { body } = await operate(world, "/subscriptions", { method: "GET" });
  assert.deepEqual(body.subscriptions.map((one: { id: string }) => one.id), [id]);
});
