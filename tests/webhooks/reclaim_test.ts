import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { deliveriesPrefix } from "../../src/store/keys.ts";
import { settle } from "../support/clock.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import { deliver, logs, subscribe } from "../support/webhooks.ts";
import { createWorld, type World } from "../support/world.ts";

await loadTokenizer();

/** A process that dies while its attempt runs, and is known to have leased it. */
async function diesDuringAttempt(isShared: boolean) {
  const store = createScriptedStore();
  const world = await createWorld({ isShared, wrapKv: store.wrap });
  await subscribe(world, { events: ["balance.deposit.*"] });
  world.subscriber.reply(() => new Promise(() => {}));
  return {
    world,
    async die() {
      await world.deposit("ada", "1");
      await world.until(() => world.subscriber.received.length === 1);
      // After a second the delivery is written.
      await world.clock.advance(1_500);
      store.dead = true;
      world.subscriber.reply(() => ({ status: 200 }));
    },
  };
}

const leases = async (world: World) =>
  (await world.deps.kv.list({ prefix: deliveriesPrefix, limit: 10 })).map(({ value }) =>
    JSON.parse(new TextDecoder().decode(value ?? undefined)).lease
  );

Deno.test("reclaim: after a restart the deliveries of the dead process are sent at once", async () => {
  const { world, die } = await diesDuringAttempt(false);
  using _ = world;
  await die();
  using after = await createWorld({ shareWith: world });
  assert.match((await leases(after))[0], /^prc_/);
  await after.app.sweep();
  await deliver(after);
  const [log, more] = await logs(after);
  assert.deepEqual([log?.status, more], ["success", undefined]);
  assert.equal(after.subscriber.received.length, 2);
});

Deno.test("reclaim: in a fleet the deliveries of a dead process are sent within seconds", async () => {
  const { world, die } = await diesDuringAttempt(true);
  using _ = world;
  using other = await createWorld({ shareWith: world });
  const beat = async (...worlds: World[]) => {
    await world.clock.advance(500);
    for (const each of worlds) await each.app.beat();
  };
  await beat(world, other);
  await die();
  for (let n = 0; n < 10; n++) await beat(other);
  await other.app.sweep();
  await deliver(other);
  assert.equal((await logs(other))[0]?.status, "pending", "it may only be slow");
  for (let n = 0; n < 4; n++) await beat(other);
  await settle();
  await deliver(other);
  assert.equal((await logs(other))[0]?.status, "success");
});

Deno.test("reclaim: an attempt of a living process is left to it, whatever its clock says", async () => {
  using world = await createWorld({ isShared: true });
  using ahead = await createWorld({ shareWith: world, aheadMs: 24 * 3_600_000 });
  await subscribe(world, { events: ["balance.deposit.*"] });
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  world.subscriber.reply(async () => {
    await opened;
    return { status: 200 };
  });
  for (let n = 0; n < 4; n++) {
    await world.clock.advance(500);
    for (const each of [ahead, world]) await each.app.beat();
  }
  await ahead.deposit("ada", "1");
  await world.until(() => world.subscriber.received.length === 1);
  await world.clock.advance(1_500);
  for (const each of [ahead, world]) await each.app.beat();
  await world.app.sweep();
  await deliver(world);
  assert.equal(world.subscriber.received.length, 1);
  open();
  await settle();
  await deliver(ahead);
  assert.deepEqual((await logs(world)).map(({ status }) => status), ["success"]);
});

Deno.test("reclaim: events of a process whose clock was ahead do not wait for that time", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await subscribe(world, { events: ["balance.deposit.*"] });
  world.clock.set(7_200_000);
  // It dies right after the deposit, before the event is sent.
  world.subscriber.reply(() => {
    store.dead = true;
    return { status: 500 };
  });
  await world.deposit("ada", "1");
  await world.app.dispatcher.idle();
  world.clock.set(-7_200_000);
  world.subscriber.reply(() => ({ status: 200 }));
  using after = await createWorld({ shareWith: world });
  await deliver(after);
  await after.clock.advance(3_000);
  await deliver(after);
  assert.equal((await logs(after))[0]?.status, "success");
});

Deno.test("reclaim: what another process has sent meanwhile is not sent again", async () => {
  const { world, die } = await diesDuringAttempt(false);
  using _ = world;
  await die();
  const store = createScriptedStore();
  using late = await createWorld({ shareWith: world, wrapKv: store.wrap });
  using after = await createWorld({ shareWith: world });
  const gate = createGate();
  store.atomic = async (write, real) => {
    if (write.sets.some(({ key }) => key[0] === "delivery")) await gate.opened;
    return await real(write);
  };
  const sweep = late.app.sweep();
  await settle();
  await after.app.sweep();
  await deliver(after);
  assert.equal((await logs(after))[0]?.status, "success");
  gate.open();
  await sweep;
  for (const each of [late, after]) await deliver(each);
  assert.equal((await logs(after))[0]?.status, "success");
  assert.equal(after.subscriber.received.length, 2);
});

Deno.test("reclaim: an event under way whose id is ahead of time is left to its sender", async () => {
  using world = await createWorld();
  await subscribe(world, { events: ["balance.deposit.*"] });
  world.clock.set(7_200_000);
  await world.deposit("ada", "1");
  await deliver(world);
  // Ids of one process only rise: the next one is ahead of the clock.
  world.clock.set(-7_200_000);
  const { promise: opened, resolve: open } = Promise.withResolvers<void>();
  world.subscriber.reply(async () => {
    await opened;
    return { status: 200 };
  });
  await world.deposit("ada", "2");
  await world.until(() => world.subscriber.received.length === 2);
  for (let n = 0; n < 3; n++) await world.app.dispatcher.poll();
  await settle();
  assert.equal(world.subscriber.received.length, 2);
  open();
  await deliver(world);
  assert.deepEqual((await logs(world)).map(({ status }) => status), ["success", "success"]);
});
