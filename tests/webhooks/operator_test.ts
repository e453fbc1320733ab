import assert from "node:assert/strict";
import { readDeliveries } from "../../src/webhooks/store.ts";
import { createScriptedStore } from "../support/store.ts";
import { createWorld } from "../support/world.ts";
import {
  assertClean,
  deliver,
  logs,
  operate,
  retry,
  subscribe,
  subscriptionsPath,
} from "../support/webhooks.ts";

const leaseMs = 25_000;

Deno.test("operator: a deactivated subscription is enabled again, and receives events again", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world);
  await world.call(`${subscriptionsPath}/${id}`, { method: "DELETE" });
  await world.deposit("ada", "1");
  const rotated = await operate(world, `/subscriptions/${id}`, {
    method: "PATCH",
    body: { rotateSecret: true },
  });
  assert.equal(rotated.body.subscription.isActive, false, "a new secret alone turns nothing on");
  const body = { isActive: true };
  const { status, body: made } = await operate(world, `/subscriptions/${id}`, {
    method: "PATCH",
    body,
  });
  assert.deepEqual([status, made.subscription.isActive, made.subscription.secret], [
    200,
    true,
    undefined,
  ]);
  await world.deposit("ada", "2");
  await deliver(world);
  assert.deepEqual(world.subscriber.received.map(({ body }) => body.event.data.amount), ["2"]);
});

Deno.test("operator: one delivery is sent again, under its own id, with as many attempts", async () => {
  using world = await createWorld();
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 404 }));
  await world.deposit("ada", "1");
  await deliver(world);
  const [failed] = await logs(world);
  world.subscriber.reply(() => ({ status: 500 }));
  const path = `/deliveries/${failed?.id}/redeliver`;
  assert.equal((await operate(world, path)).status, 202);
  await deliver(world);
  const early = await operate(world, path);
  assert.deepEqual([early.status, early.body.error.code], [400, "delivery_pending"]);
  world.subscriber.reply(() => ({}));
  await retry(world);
  const [entry] = await logs(world);
  assert.deepEqual([entry?.id, entry?.status, entry?.attempts], [failed?.id, "success", 3]);
  assert.equal((await operate(world, "/deliveries/dly_0/redeliver")).status, 404);
});

Deno.test("operator: one can be sent again at the exact time at which its last lease would have ended", async () => {
  using world = await createWorld();
  await subscribe(world);
  await world.deposit("ada", "1");
  await deliver(world);
  const [first] = await logs(world);
  const named = { projectId: world.projectId, id: first?.id ?? "" };
  const [stored] = await readDeliveries(world.deps.kv, [named]);
  await world.clock.advance((stored?.value.dueAt ?? 0) - world.clock.now());
  assert.equal((await operate(world, `/deliveries/${first?.id}/redeliver`)).status, 202);
  await deliver(world);
  const [again] = await logs(world);
  assert.deepEqual([again?.status, again?.attempts], ["success", 2]);
  await assertClean(world);
});

Deno.test("operator: all that failed since a time is sent again, also after a crash in between", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  const { id } = await subscribe(world);
  const spared = await subscribe(world);
  world.subscriber.reply(() => ({ status: 404 }));
  await world.deposit("ada", "1");
  await deliver(world);
  await world.clock.advance(60_000);
  const since = new Date(world.clock.now()).toISOString();
  for (let n = 0; n < 40; n++) await world.deposit("ada", "2");
  await deliver(world);
  world.subscriber.received.length = 0;
  world.subscriber.reply(() => ({}));
  let parts = 0;
  store.atomic = (write, real) => {
    if (write.sets.some(({ key }) => key[0] === "redelivery_job") && ++parts === 3) {
      store.dead = true;
    }
    return real(write);
  };
  const { status, body } = await operate(world, `/subscriptions/${id}/redeliver`, {
    body: { since },
  });
  assert.equal(status, 202);
  await deliver(world).catch(() => {});
  using survivor = await createWorld({ shareWith: world });
  for (let round = 0; round < 3; round++) {
    await survivor.app.sweep();
    await deliver(survivor);
    await world.clock.advance(leaseMs + 1_000);
  }
  const again = new Set(world.subscriber.received.map(({ body }) => body.delivery.id));
  assert.equal(again.size, 40);
  assert.ok(world.subscriber.received.every(({ body }) => body.delivery.subscriptionId === id));
  assert.equal((await logs(survivor, `&status=error&subscriptionId=${spared.id}`)).length, 41);
  const path = `/redeliveries/${body.redelivery.id}`;
  const job = (await operate(survivor, path, { method: "GET" })).body.redelivery;
  assert.deepEqual([job.status, job.redelivered], ["done", 40]);
  const bad = await operate(survivor, `/subscriptions/${id}/redeliver`, { body: { since: "now" } });
  assert.deepEqual([bad.status, bad.body.error.param], [400, "since"]);
});
