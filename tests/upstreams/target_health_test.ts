import assert from "node:assert/strict";
import type { Key } from "../../src/store/kv.ts";
import { targetHealthPrefix } from "../../src/store/keys.ts";
import { createTargetHealth, type TargetHealth } from "../../src/upstreams/target_health.ts";
import type { Target, Targets } from "../../src/upstreams/upstream.ts";
import { settle } from "../support/clock.ts";
import { createScriptedStore } from "../support/store.ts";
import { choiceCall, namesOf, targetsOf } from "../support/targets.ts";
import { mulberry32 } from "../support/random.ts";
import { createWorld, type World } from "../support/world.ts";

const random = mulberry32(3);
const listed = { a: 1, b: 1 };

/** The targets of one call in order, as one process orders them. */
async function ordered(
  health: TargetHealth,
  targets: Targets = targetsOf(listed),
): Promise<readonly Target[]> {
  return await health.order(targets, choiceCall(random));
}

async function firstOf(health: TargetHealth): Promise<string | undefined> {
  return namesOf(await ordered(health))[0];
}

/** Makes calls as the pipeline does, `a` failing each time; gives how often it was asked. */
async function failingCalls(health: TargetHealth, calls: number): Promise<number> {
  let asked = 0;
  for (let call = 0; call < calls; call++) {
    for (const target of await ordered(health)) {
      if (!health.begin(target)) continue;
      if (target.upstream.name === "b") {
        health.answered(target, 100);
        break;
      }
      asked++;
      health.failed(target, null);
    }
  }
  return asked;
}

async function rowsOf({ deps }: World): Promise<Key[]> {
  const rows = await deps.kv.list({ prefix: targetHealthPrefix, limit: 10 });
  return rows.map(({ key }) => key);
}

const viewOf = (health: TargetHealth, name: string) =>
  health.view().find(({ upstream }) => upstream === name);

Deno.test("a target that fails is asked five times, and then only by probes", async () => {
  using world = await createWorld();
  const health = createTargetHealth(world.deps);
  assert.equal(await failingCalls(health, 100), 5);
  assert.equal(viewOf(health, "a")?.state, "open");
  let probes = 0;
  for (let second = 0; second < 300; second++) {
    await world.clock.advance(1_000);
    probes += await failingCalls(health, 10);
  }
  // After about 5, 15, 35, 75, 135, 195 and 255 s.
  assert(probes >= 6 && probes <= 9, `${probes} probes`);
});

Deno.test("while a probe is under way, other calls ask other targets; its success ends that", async () => {
  using world = await createWorld();
  const health = createTargetHealth(world.deps);
  await failingCalls(health, 5);
  await world.clock.advance(6_000);
  const orders = await Promise.all(Array.from({ length: 20 }, () => ordered(health)));
  assert(orders.every((order) => namesOf(order)[0] === "a"), "it is in its usual place");
  const began = orders.flatMap(([a]) => a && health.begin(a) ? [a] : []);
  assert.equal(began.length, 1);
  assert.equal(await firstOf(health), "b");
  const [probe] = began;
  assert(probe);
  await world.clock.advance(50);
  health.answered(probe, 50);
  assert.equal(await firstOf(health), "a");
  assert.equal(viewOf(health, "a")?.state, "closed");
});

Deno.test("a probe whose caller leaves is free for the next call; another call frees nothing", async () => {
  using world = await createWorld();
  const health = createTargetHealth(world.deps);
  await failingCalls(health, 5);
  await world.clock.advance(6_000);
  const [probe] = await ordered(health);
  const [other] = await ordered(health);
  assert(probe && other);
  assert.equal(health.begin(probe), true);
  assert.equal(health.begin(other), false);
  health.ended(other);
  assert.equal(health.begin(other), false);
  health.ended(probe);
  assert.equal(health.begin(other), true);
});

Deno.test("a single target is always asked, and costs neither memory nor the store", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  const health = createTargetHealth(world.deps);
  const { writes: { length: before } } = store;
  const single = targetsOf({ a: 1 });
  const unrouted = { route: null, targets: single.targets };
  store.dead = true;
  for (const targets of [single, unrouted]) {
    for (let count = 0; count < 20; count++) {
      const order = await ordered(health, targets);
      assert.equal(order, targets.targets);
      const [target] = order;
      assert(target && health.begin(target));
      health.failed(target, 60_000);
    }
  }
  assert.deepEqual(health.view(), []);
  assert.equal(store.writes.length, before);
});

Deno.test("every target is still listed where all breakers are open", async () => {
  using world = await createWorld();
  const health = createTargetHealth(world.deps);
  for (const target of await ordered(health)) {
    health.begin(target);
    health.failed(target, 30_000);
  }
  const order = await ordered(health);
  assert.deepEqual(namesOf(order), ["a", "b"]);
  assert(order.every((target) => health.begin(target)));
});

Deno.test("fastest learns from first bytes, and forgets them after ten minutes", async () => {
  using world = await createWorld();
  const health = createTargetHealth(world.deps);
  const order = async () =>
    namesOf(await health.order(targetsOf(listed, "fastest"), choiceCall(() => 0.5)));
  const [a, b] = await ordered(health);
  assert(a && b);
  health.answered(a, 500);
  assert.deepEqual(await order(), ["a", "b"]);
  health.answered(b, 300);
  assert.deepEqual(await order(), ["b", "a"]);
  await world.clock.advance(60_000);
  health.answered(a, 50);
  // What came a minute before counts half as much.
  assert.equal(viewOf(health, "a")?.firstByteMs, 200);
  assert.deepEqual(await order(), ["a", "b"]);
  await world.clock.advance(601_000);
  assert.equal(viewOf(health, "b")?.firstByteMs, null);
});

Deno.test("what one key has used up does not count for another key of the same upstream", async () => {
  using world = await createWorld();
  const health = createTargetHealth(world.deps);
  const withKey = (apiKey: string) => targetsOf(listed, "order", { apiKey });
  const [a] = await ordered(health, withKey("sk-one"));
  assert(a);
  health.failed(a, 60_000);
  assert.deepEqual(namesOf(await ordered(health, withKey("sk-one"))), ["b", "a"]);
  assert.deepEqual(namesOf(await ordered(health, withKey("sk-two"))), ["a", "b"]);
  assert(!JSON.stringify(health.view()).includes("sk-one"));
});

Deno.test("at most 1,000 targets are known", async () => {
  using world = await createWorld();
  const health = createTargetHealth(world.deps);
  for (let index = 0; index < 600; index++) {
    await ordered(health, targetsOf({ [`a${index}`]: 1, [`b${index}`]: 1 }));
  }
  const { length } = health.view();
  assert.ok(length <= 1_000 && length > 900, `${length}`);
  assert.equal(viewOf(health, "a599")?.state, "closed");
  assert.equal(viewOf(health, "a0"), undefined);
});

Deno.test("times of two processes differ, and those of one process", async () => {
  using world = await createWorld();
  const openMs = async (seed: number) => {
    const health = createTargetHealth(world.deps);
    const call = choiceCall(mulberry32(seed));
    const name = `a${seed}`;
    const [a] = await health.order(targetsOf({ [name]: 1, b: 1 }), call);
    assert(a);
    health.failed(a, 0);
    const first = (viewOf(health, name)?.openUntil ?? 0) - world.clock.now();
    assert(first >= 4_000 && first < 6_000);
    return first;
  };
  const times = await Promise.all([1, 2, 3, 4].map(openMs));
  assert.equal(new Set(times).size, 4);
});

Deno.test("two processes: one learns within 3 s that a breaker opened, and that it closed", async () => {
  using world = await createWorld();
  using second = await createWorld({ shareWith: world });
  const [here, there] = [createTargetHealth(world.deps), createTargetHealth(second.deps)];
  assert.equal(await firstOf(there), "a");
  const [a] = await ordered(here);
  assert(a && here.begin(a));
  here.failed(a, 60_000);
  await settle();
  const learns = async (expected: string) => {
    for (let ms = 0; ms < 3_000; ms += 250) {
      await ordered(there);
      await world.clock.advance(250);
    }
    assert.equal(await firstOf(there), expected);
  };
  await learns("b");
  // Asked where nothing else was left, it answers.
  assert.equal(await firstOf(here), "b");
  assert(here.begin(a));
  await world.clock.advance(10);
  here.answered(a, 10);
  await learns("a");
  assert.deepEqual(await rowsOf(world), []);
});

Deno.test("a process that starts knows from its first call which breakers are open", async () => {
  using world = await createWorld();
  const [a] = await ordered(createTargetHealth(world.deps));
  assert(a);
  const health = createTargetHealth(world.deps);
  await ordered(health);
  health.failed(a, 60_000);
  await settle();
  const restarted = createTargetHealth(world.deps);
  assert.equal(await firstOf(restarted), "b");
  await world.clock.advance(73_000);
  assert.equal(await firstOf(restarted), "a");
});

Deno.test("a read that began before a write here does not undo it", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  const health = createTargetHealth(world.deps);
  const [a] = await ordered(health);
  assert(a);
  const { promise, resolve } = Promise.withResolvers<void>();
  store.get = async (key, real) => {
    const row = await real(key);
    if (key[0] === targetHealthPrefix[0]) await promise;
    return row;
  };
  await world.clock.advance(2_000);
  await ordered(health);
  health.failed(a, 60_000);
  resolve();
  store.get = null;
  await settle();
  assert.equal(await firstOf(health), "b");
});

Deno.test("the sweep removes rows whose time has passed, and no others", async () => {
  using world = await createWorld();
  const health = createTargetHealth(world.deps);
  const [a, b] = await ordered(health);
  assert(a && b);
  health.failed(a, 10_000);
  health.failed(b, 200_000);
  await world.clock.advance(100_000);
  assert.equal((await rowsOf(world)).length, 2);
  await world.app.sweep();
  assert.equal((await rowsOf(world)).length, 1);
  assert.equal(await firstOf(health), "a");
});

Deno.test("a store that is down fails no call, and is logged once a minute", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  const health = createTargetHealth(world.deps);
  store.dead = true;
  assert.equal(await failingCalls(health, 20), 5);
  const logged = () =>
    world.logged.filter(({ event }) => event === "target_health_not_shared").length;
  assert.equal(logged(), 1);
  for (let second = 0; second < 61; second++) {
    await world.clock.advance(1_000);
    await failingCalls(health, 1);
  }
  assert.equal(logged(), 2);
});

Deno.test("a store that hangs delays the first call for a quarter of a second, and no other", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  const health = createTargetHealth(world.deps);
  store.get = () => new Promise(() => {});
  const first = ordered(health);
  await world.clock.advance(250);
  assert.deepEqual(namesOf(await first), ["a", "b"]);
  await world.clock.advance(10_000);
  assert.deepEqual(namesOf(await ordered(health)), ["a", "b"]);
});
