import assert from "node:assert/strict";
import { outboxGraceMs, unwrittenMaxMs } from "../../src/webhooks/delivery/fan_out.ts";
import { dueKey, readyKey } from "../../src/store/keys.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { readDeliveries } from "../../src/webhooks/store.ts";
import { storedRows } from "../support/books.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import { createWorld } from "../support/world.ts";
import { assertClean, deliver, logs, subscribe } from "../support/webhooks.ts";

const leaseMs = 25_000;

Deno.test("recovery: a process that dies after the cause leaves its events to the next", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await subscribe(world);
  using survivor = await createWorld({ shareWith: world });
  // Dies directly after the deposit's own write.
  store.atomic = async (write, real) => {
    if (!write.sets.some(({ key }) => key[0] === "outbox")) throw new TypeError("dead");
    return await real(write);
  };
  await world.deposit("ada", "1");
  await world.app.dispatcher.idle();
  await deliver(survivor);
  assert.equal(world.subscriber.received.length, 1, "it is young, and may still be in good hands");
  await world.clock.advance(outboxGraceMs + 1);
  await deliver(survivor);
  const [sent, again] = survivor.subscriber.received.map(({ body }) => body);
  assert.deepEqual([sent.event, sent.delivery.id], [again.event, again.delivery.id]);
  const [entry, another] = await logs(survivor);
  assert.deepEqual([entry?.id, entry?.status, another], [again.delivery.id, "success", undefined]);
  await assertClean(survivor);
});

Deno.test("recovery: an event that waited longer than events are kept is delivered", async () => {
  const store = createScriptedStore();
  const env = { WEBHOOK_RETENTION_DAYS: "1" };
  using world = await createWorld({ wrapKv: store.wrap, env });
  await subscribe(world);
  using survivor = await createWorld({ shareWith: world, env });
  store.atomic = async (write, real) => {
    if (!write.sets.some(({ key }) => key[0] === "outbox")) throw new TypeError("dead");
    return await real(write);
  };
  await world.deposit("ada", "1");
  await world.app.dispatcher.idle();
  const [before] = world.subscriber.received;
  await world.clock.advance(60 * 24 * 3_600_000);
  await survivor.app.sweep();
  await deliver(survivor);
  const [, after] = survivor.subscriber.received;
  assert.deepEqual(after?.body.event, before?.body.event);
  assert.equal((await logs(survivor))[0]?.status, "success");
  await survivor.app.sweep();
  await survivor.app.sweep();
  assert.deepEqual((await storedRows(survivor)).filter(({ key }) => key[0] === "event"), []);
});

Deno.test("recovery: what could be neither started nor written in time is left to the others", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await subscribe(world);
  using survivor = await createWorld({ shareWith: world });
  const opening = createGate();
  store.get = async (key, real) => {
    if (key[0] === "subscription") await opening.opened;
    return await real(key);
  };
  store.atomic = async (write, real) => {
    if (!write.sets.some(({ key }) => key[0] === "entry")) {
      throw new TypeError("no way to the store");
    }
    return await real(write);
  };
  await world.deposit("ada", "1");
  await world.clock.advance(outboxGraceMs + 1);
  await deliver(survivor);
  assert.equal(world.subscriber.received.length, 1);
  opening.open();
  await world.app.dispatcher.idle();
  assert.equal(world.subscriber.received.length, 1, "its turn came too late");
  store.atomic = null;
  await assertClean(survivor);
});

Deno.test("recovery: a delivery whose process dies while it is under way is sent again", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await subscribe(world);
  using survivor = await createWorld({ shareWith: world });
  const gate = Promise.withResolvers<void>();
  world.subscriber.reply(async () => {
    await gate.promise;
    store.dead = true;
    return {};
  });
  await world.deposit("ada", "1");
  await world.clock.advance(unwrittenMaxMs);
  const [running] = await logs(world);
  assert.deepEqual([running?.status, running?.attempts], ["pending", 0], "one that lasts is seen");
  gate.resolve();
  await world.app.dispatcher.idle();
  world.subscriber.reply(() => ({}));
  await world.clock.advance(leaseMs - unwrittenMaxMs - 1);
  await deliver(survivor);
  assert.equal(survivor.subscriber.received.length, 1, "not while the lease lasts");
  await world.clock.advance(1_000);
  await deliver(survivor);
  assert.equal(survivor.subscriber.received.length, 2);
  const [entry] = await logs(survivor);
  assert.deepEqual([entry?.status, entry?.attempts], ["success", 1]);
  await assertClean(survivor);
});

Deno.test("recovery: a delivery that kills every process that attempts it is given up", async () => {
  using world = await createWorld({ env: { WEBHOOK_MAX_ATTEMPTS: "2" } });
  await subscribe(world);
  let tries = 0;
  for (; tries < 10; tries++) {
    const store = createScriptedStore();
    using victim = await createWorld({
      shareWith: world,
      wrapKv: store.wrap,
      env: { WEBHOOK_MAX_ATTEMPTS: "2" },
    });
    const before = world.subscriber.received.length;
    world.subscriber.reply(() => {
      store.dead = true;
      return {};
    });
    if (tries === 0) await victim.deposit("ada", "1");
    await deliver(victim).catch(() => {});
    if (world.subscriber.received.length === before) break;
    await world.clock.advance(leaseMs + 1_000);
  }
  assert.equal(tries, 6, "an unwritten one, two attempts, and three that death took");
  const [entry] = await logs(world);
  assert.equal(entry?.status, "error");
  assert.match(entry?.error, /never completed/);
  await assertClean(world);
});

Deno.test("recovery: alarms that are lost, doubled or early change nothing", async () => {
  using world = await createWorld();
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 500 }));
  await world.deposit("ada", "1");
  await deliver(world);
  assert.ok(world.alarm.asked.length > 0);
  for (let n = 0; n < 5; n++) world.alarm.ring();
  await world.app.dispatcher.idle();
  assert.equal(world.subscriber.received.length, 1, "not before its time");
  world.subscriber.reply(() => ({}));
  const [entry] = await logs(world);
  await world.clock.advance(Date.parse(entry?.nextRetryAt) - world.clock.now());
  for (let n = 0; n < 5; n++) world.alarm.ring();
  await world.app.dispatcher.idle();
  assert.equal(world.subscriber.received.length, 2, "the alarm alone is enough, and rings once");
});

Deno.test("recovery: two processes on one store deliver each thing once", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  await subscribe(world);
  world.subscriber.reply(() => ({ status: 500 }));
  for (let n = 0; n < 20; n++) await (n % 2 ? world : other).deposit("ada", "1");
  for (const each of [world, other]) await deliver(each);
  world.subscriber.reply(() => ({}));
  await world.clock.advance(45_000);
  await Promise.all([deliver(world), deliver(other)]);
  const seen = Map.groupBy(world.subscriber.received, ({ body }) => body.delivery.id);
  assert.equal(seen.size, 20);
  for (const tries of seen.values()) assert.equal(tries.length, 2);
  const entries = await logs(world);
  assert.deepEqual(new Set(entries.map(({ status }) => status)), new Set(["success"]));
  await assertClean(world);
});

Deno.test("recovery: a store that fails now and then loses no event and no result", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await subscribe(world);
  let n = 0;
  store.atomic = async (write, real) => {
    n++;
    if (n % 7 === 0) throw new TypeError("broken pipe");
    const version = await real(write);
    if (n % 5 === 0) throw new TypeError("the answer was lost");
    return version;
  };
  let booked = 0;
  for (let deposit = 0; deposit < 30; deposit++) {
    const { status } = await world.json("/v1/user/balance/deposit", {
      body: { user: "ada", amount: "1" },
    });
    if (status === 200) booked++;
  }
  for (let round = 0; round < 5; round++) {
    await deliver(world).catch(() => {});
    await world.clock.advance(leaseMs + 1_000);
  }
  store.atomic = null;
  await deliver(world);
  const seen = new Set(world.subscriber.received.map(({ body }) => body.event.id));
  const entries = (await world.activities("ada")).length;
  assert.ok(entries >= booked && booked > 10, `${entries} of ${booked}`);
  assert.equal(seen.size, entries, "one event for each entry, whatever its caller was told");
  const ended = await logs(world);
  assert.deepEqual(new Set(ended.map(({ status }) => status)), new Set(["success"]));
  await assertClean(world);
});

Deno.test("recovery: a store that refuses while leftovers are removed stops nothing else", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  const { id } = await subscribe(world);
  await world.deposit("ada", "1");
  await deliver(world);
  const [ended] = await logs(world);
  const named = { projectId: world.projectId, id: ended?.id };
  const [stored] = await readDeliveries(world.deps.kv, [named]);
  const dueAt = stored?.value.dueAt ?? assert.fail();
  await world.clock.advance(dueAt - world.clock.now() + 1_000);
  const soon = world.clock.now() - 1_000;
  const value = new TextEncoder().encode(world.projectId);
  const keys = [readyKey(soon, id), dueKey(id, soon, "dly_0"), dueKey(id, dueAt, ended?.id)];
  const sets = keys.map((key) => ({ key, value }));
  await world.deps.kv.atomic({ ...emptyWrite(), sets });
  store.atomic = () => Promise.reject(new TypeError("no way to the store"));
  let looks = 0;
  store.get = async (key, real) => {
    // The second row is checked once more while the removal of the first one fails.
    const again = key[0] === "delivery" && key[2] === ended?.id && ++looks > 1;
    if (again) await new Promise((go) => setTimeout(go, 20));
    return await real(key);
  };
  await assert.rejects(world.app.dispatcher.poll(), { status: 503 });
  assert.equal(looks, 2);
  Object.assign(store, { atomic: null, get: null });
  await deliver(world);
  await assertClean(world);
});

Deno.test("recovery: however many ready rows there are, what is due is found, and all of them are removed", async () => {
  using world = await createWorld();
  const { id } = await subscribe(world);
  world.subscriber.reply(() => ({ status: 500 }));
  await world.deposit("ada", "1");
  await deliver(world);
  world.subscriber.reply(() => ({}));
  await world.clock.advance(3_600_000);
  // Of other subscriptions, older and on more than one page; and of this one, more than one write
  // takes.
  const value = new TextEncoder().encode(world.projectId);
  const start = world.clock.now() - 7_200_000;
  const keys = Array.from({ length: 450 }, (_, n) => readyKey(start + n * 1_000, `other_${n}`))
    .concat(Array.from({ length: 150 }, (_, n) => readyKey(start + 500_000 + n * 1_000, id)));
  for (const key of keys) {
    await world.deps.kv.atomic({ ...emptyWrite(), sets: [{ key, value }] });
  }
  await deliver(world);
  assert.equal(world.subscriber.received.length, 2, "the first poll goes through all pages");
  await world.clock.advance(2 * leaseMs);
  await deliver(world);
  await deliver(world);
  assert.deepEqual(await world.deps.kv.list({ prefix: ["ready"], limit: 10 }), []);
  assert.equal((await logs(world))[0]?.status, "success");
});

Deno.test("recovery: an event with more subscriptions than one write takes reaches all", async () => {
  using world = await createWorld();
  const ids = new Set<string>();
  for (let n = 0; n < 70; n++) ids.add((await subscribe(world)).id);
  await world.deposit("ada", "1");
  await deliver(world);
  await deliver(world);
  const told = world.subscriber.received.map(({ body }) => body.delivery.subscriptionId);
  assert.equal(told.length, 70);
  assert.deepEqual(new Set(told), ids);
  await assertClean(world);
});

Deno.test("recovery: a clean stop delivers what it has started, and leaves the rest to the next process", async () => {
  using world = await createWorld();
  await subscribe(world);
  const gate = Promise.withResolvers<void>();
  world.subscriber.reply(async () => {
    await gate.promise;
    return {};
  });
  for (let n = 0; n < 100; n++) await world.deposit("ada", "1");
  const stopping = world.app.dispatcher.stop();
  await world.deposit("ada", "1");
  gate.resolve();
  await stopping;
  const delivered = world.subscriber.received.length;
  assert.equal(delivered, 100);
  using next = await createWorld({ shareWith: world });
  await world.clock.advance(outboxGraceMs + 1);
  for (let round = 0; round < 5; round++) await deliver(next);
  assert.equal(new Set(world.subscriber.received.map(({ body }) => body.event.id)).size, 101);
  assert.equal(world.subscriber.received.length, 101, "each once");
  await assertClean(next);
});
