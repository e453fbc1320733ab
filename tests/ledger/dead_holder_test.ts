import assert from "node:assert/strict";
import { fromDecimal, zero } from "../../src/base/money.ts";
import { encodeAccount } from "../../src/ledger/account.ts";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { accountKey, processesPrefix } from "../../src/store/keys.ts";
import { chatBody, chatPath, checkBooks, storedAccount, storedEntries } from "../support/books.ts";
import { settle } from "../support/clock.ts";
import { createGate, createScriptedStore, type ScriptedStore } from "../support/store.ts";
import { chunk, completion, fedStream, readEvents } from "../support/upstream.ts";
import { put } from "../support/verify.ts";
import { deliver, subscribe } from "../support/webhooks.ts";
import { createWorld, testPricing, type World } from "../support/world.ts";

// A process that is killed holds money and idempotency keys. They are free as soon as it is known
// to be dead, not only when its holds would have expired.
await loadTokenizer();

const keyed = { headers: { "idempotency-key": "k-1" } };

/** Calls of every kind that hold money, each as its own user. */
const calls: Record<string, { path: string; body: (user: string) => Record<string, unknown> }> = {
  chat: { path: chatPath, body: (user) => chatBody(user) },
  stream: { path: chatPath, body: (user) => chatBody(user, { stream: true }) },
  completion: {
    path: "/v1/completions",
    body: (user) => ({ model: "test-model", user, prompt: "Hi" }),
  },
  responses: {
    path: "/v1/responses",
    body: (user) => ({ model: "test-model", user, input: "Hi" }),
  },
  messages: {
    path: "/v1/ada/v1/messages",
    body: () => ({
      model: "test-model",
      max_tokens: 10,
      messages: [{ role: "user", content: "Hi" }],
    }),
  },
  embeddings: {
    path: "/v1/embeddings",
    body: (user) => ({ model: "test-model", user, input: "Hi" }),
  },
  speech: {
    path: "/v1/ada/audio/speech",
    body: () => ({ model: "voice-model", input: "Hi", voice: "alloy" }),
  },
};
const pricing = {
  models: { ...testPricing.models, "voice-model": { input: "0", output: "0", characters: "15" } },
};

/** A process whose calls never end, and that then dies. */
async function killedDuring(
  store: ScriptedStore,
  options: Parameters<typeof createWorld>[0] = {},
): Promise<World> {
  const world = await createWorld({ ...options, wrapKv: store.wrap });
  world.upstream.reply(() => new Promise(() => {}));
  return world;
}

/** A streamed chat of ada's, with its use recorded once. */
async function startStream(world: World): Promise<void> {
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const body = chatBody("ada", { stream: true });
  readEvents(await world.call(chatPath, { body })).catch(() => {});
  stream.send(chunk({ content: "Hello there" }));
  await world.clock.advance(25_000);
}

for (const [kind, { path, body }] of Object.entries(calls)) {
  Deno.test(`dead holder: after a restart, what a killed ${kind} call held is free at once`, async () => {
    const store = createScriptedStore();
    using world = await killedDuring(store, { project: { pricing } });
    await world.deposit("ada", "1");
    world.call(path, { body: body("ada"), keepClock: true }).catch(() => {});
    await world.until(() => world.upstream.calls.length === 1);
    assert.notEqual((await world.balance("ada")).held, "0");
    store.dead = true;
    await world.clock.advance(2_000);
    using after = await createWorld({ shareWith: world });
    assert.deepEqual(await after.balance("ada"), { balance: "1", held: "0", available: "1" });
    await after.app.sweep();
    assert.equal((await storedAccount(after, "ada")).holds.length, 0);
    assert.equal((await checkBooks(after, "ada")).at(-1)?.kind, "expired");
  });
}

Deno.test("dead holder: what a killed stream had used is charged, once", async () => {
  const store = createScriptedStore();
  using world = await killedDuring(store);
  await world.deposit("ada", "1");
  await startStream(world);
  store.dead = true;
  using after = await createWorld({ shareWith: world });
  // Our own count: 8 tokens of prompt and 2 of output.
  const ended = { balance: "0.999988", held: "0", available: "0.999988" };
  assert.deepEqual(await after.balance("ada"), ended);
  await after.app.sweep();
  await after.app.sweep();
  assert.deepEqual(await after.balance("ada"), ended);
  assert.deepEqual((await storedEntries(after, "ada")).map(({ kind }) => kind), [
    "deposit",
    "expired",
  ]);
});

Deno.test("dead holder: a repeated chat is answered at once after a restart, and charged once", async () => {
  const store = createScriptedStore();
  using world = await killedDuring(store);
  await world.deposit("ada", "1");
  world.call(chatPath, { body: chatBody("ada"), ...keyed }).catch(() => {});
  await world.until(() => world.upstream.calls.length === 1);
  store.dead = true;
  await world.clock.advance(2_000);
  using after = await createWorld({ shareWith: world });
  after.upstream.reply(() => completion());
  const askedAt = after.clock.now();
  const { status } = await after.json(chatPath, { body: chatBody("ada"), ...keyed });
  assert.equal(status, 200);
  assert.equal(after.clock.now(), askedAt, "it waits for nothing");
  assert.deepEqual((await checkBooks(after, "ada")).map(({ kind, delta }) => [kind, delta]), [
    ["deposit", "1"],
    ["expired", "0"],
    ["usage", "-0.00002"],
  ]);
});

/** Two processes of one shared store. `beat` lets those beat that live, twice a second. */
async function fleetOfTwo(store: ScriptedStore) {
  const one = await killedDuring(store, { isShared: true });
  const two = await createWorld({ shareWith: one });
  two.upstream.reply(() => completion());
  return {
    one,
    two,
    async beat(ms: number, ...worlds: World[]) {
      for (let passed = 0; passed < ms; passed += 500) {
        await one.clock.advance(500);
        for (const world of worlds) await world.app.beat();
      }
      await settle();
    },
    [Symbol.dispose]() {
      two[Symbol.dispose]();
      one[Symbol.dispose]();
    },
  };
}

Deno.test("dead holder: in a fleet, another process takes over within seconds of a death", async () => {
  const store = createScriptedStore();
  using fleet = await fleetOfTwo(store);
  const { one, two, beat } = fleet;
  await one.deposit("ada", "1");
  await beat(1_000, one, two);
  await startStream(one);
  await beat(1_000, one, two);
  store.dead = true;
  await beat(5_000, two);
  assert.equal((await storedAccount(two, "ada")).holds.length, 1, "it may only be slow");
  await beat(2_000, two);
  assert.equal((await storedAccount(two, "ada")).holds.length, 0, "without a sweep");
  assert.equal((await checkBooks(two, "ada")).at(-1)?.delta, "-0.000012");
});

Deno.test("dead holder: a process that starts after a death takes over too", async () => {
  const store = createScriptedStore();
  using fleet = await fleetOfTwo(store);
  const { one, two, beat } = fleet;
  await one.deposit("ada", "1");
  await startStream(one);
  store.dead = true;
  // Nobody saw the dead one alive; another process has removed its row.
  for (const { key } of await two.deps.kv.list({ prefix: processesPrefix, limit: 10 })) {
    await two.deps.kv.atomic({ checks: [], sets: [], deletes: [key] });
  }
  assert.notEqual((await two.balance("ada")).held, "0");
  await beat(1_000, two);
  assert.equal((await two.balance("ada")).held, "0");
});

Deno.test("dead holder: a living process keeps its holds while the store stalls for all", async () => {
  const store = createScriptedStore();
  using fleet = await fleetOfTwo(store);
  const { one, two, beat } = fleet;
  await one.deposit("ada", "1");
  await beat(1_000, one, two);
  await startStream(one);
  await beat(1_000, one, two);
  // No process can beat; then the first one does so last.
  await one.clock.advance(20_000);
  await beat(3_000, two);
  await beat(1_000, one, two);
  await two.app.sweep();
  assert.equal((await storedAccount(two, "ada")).holds.length, 1);
});

Deno.test("dead holder: a process that was only paused charges nothing twice when it goes on", async () => {
  const store = createScriptedStore();
  using fleet = await fleetOfTwo(store);
  const { one, two, beat } = fleet;
  await one.deposit("ada", "1");
  await beat(1_000, one, two);
  const gate = createGate();
  one.upstream.once(async () => {
    await gate.opened;
    return completion();
  });
  const answer = one.json(chatPath, { body: chatBody("ada"), ...keyed });
  await one.until(() => one.upstream.calls.length === 1);
  await beat(9_000, two);
  assert.equal((await storedAccount(two, "ada")).holds.length, 0);
  const again = await two.json(chatPath, { body: chatBody("ada"), ...keyed });
  assert.equal(again.status, 200);
  gate.open();
  assert.equal((await answer).body.error.code, "hold_lost");
  assert.deepEqual((await checkBooks(two, "ada")).map(({ kind, delta }) => [kind, delta]), [
    ["deposit", "1"],
    ["expired", "0"],
    ["usage", "-0.00002"],
  ]);
});

Deno.test("dead holder: a call that ends after its hold was taken tells of no second end", async () => {
  const store = createScriptedStore();
  using fleet = await fleetOfTwo(store);
  const { one, two, beat } = fleet;
  await subscribe(one, { events: ["proxy.request.*"] });
  await one.deposit("ada", "1");
  await beat(1_000, one, two);
  const gate = createGate();
  one.upstream.once(async () => {
    await gate.opened;
    return Response.json({ error: { message: "No." } }, { status: 400 });
  });
  const answer = one.json(chatPath, { body: chatBody("ada") });
  await one.until(() => one.upstream.calls.length === 1);
  await beat(9_000, two);
  assert.equal((await storedAccount(two, "ada")).holds.length, 0);
  gate.open();
  assert.equal((await answer).status, 400);
  for (const world of [one, two]) await deliver(world);
  await one.clock.advance(5_000);
  for (const world of [one, two]) await deliver(world);
  const ends = new Map(one.subscriber.received.map(({ body: { event } }) => [event.id, event]));
  assert.deepEqual(
    [...ends.values()].map(({ type, data }) => [type, data.errorCode]).toSorted(),
    [["proxy.request.failed", "hold_expired"], ["proxy.request.started", undefined]],
  );
});

Deno.test("dead holder: a process whose row was removed while it was paused holds money under a new name", async () => {
  const store = createScriptedStore();
  using fleet = await fleetOfTwo(store);
  const { one, two, beat } = fleet;
  await one.deposit("ada", "1");
  await beat(1_000, one, two);
  await beat(70_000, two);
  one.call(chatPath, { body: chatBody("ada") }).catch(() => {});
  await one.until(() => one.upstream.calls.length === 1);
  await two.deposit("ada", "1");
  await beat(20_000, one, two);
  await two.deposit("ada", "1");
  assert.equal((await storedAccount(two, "ada")).holds.length, 1);
});

Deno.test("dead holder: a process whose clock is hours off ends nothing of the others, and says so", async () => {
  const store = createScriptedStore();
  using fleet = await fleetOfTwo(store);
  const { one, beat } = fleet;
  using ahead = await createWorld({ shareWith: one, aheadMs: 7_200_000 });
  await one.deposit("ada", "1");
  await beat(3_000, one, ahead);
  await startStream(one);
  await beat(3_000, one, ahead);
  await ahead.deposit("ada", "1");
  await ahead.app.sweep();
  assert.equal((await storedAccount(one, "ada")).holds.length, 1);
  for (
    const [world, ms, says] of [[ahead, -7_200_000, "behind"], [
      one,
      7_200_000,
      "ahead of",
    ]] as const
  ) {
    const told = world.logged.filter(({ event }) => event === "clocks_differ");
    assert.equal(told.length, 1, "once");
    assert.ok(Math.abs(Number(told[0]?.aheadMs) - ms) < 5_000, `${told[0]?.aheadMs}`);
    const { body } = await world.json("/readyz", { key: null });
    assert.match(
      body.warnings[0],
      new RegExp(`^The clock of process prc_\\w+ is 7\\d{3} s ${says} this one's`),
    );
  }
  // It dies: what it holds is free, whatever its clock said.
  store.dead = true;
  await beat(8_000, ahead);
  assert.equal((await storedAccount(ahead, "ada")).holds.length, 0);
});

Deno.test("dead holder: holds from before a clock was set right, and a crash, are free at the start", async () => {
  const store = createScriptedStore();
  using world = await killedDuring(store);
  await world.deposit("ada", "1");
  await subscribe(world, { events: ["proxy.request.*"] });
  world.clock.set(7_200_000);
  world.call(chatPath, { body: chatBody("ada"), ...keyed }).catch(() => {});
  await world.until(() => world.upstream.calls.length === 1);
  store.dead = true;
  world.clock.set(-7_200_000);
  using after = await createWorld({ shareWith: world });
  assert.equal((await after.balance("ada")).held, "0");
  await after.app.sweep();
  for (let n = 0; n < 3; n++) {
    await after.clock.advance(2_000);
    await deliver(after);
  }
  // What the dead process had sent may come again.
  const told = new Set(after.subscriber.received.map(({ body }) => body.event.type));
  assert.deepEqual([...told].toSorted(), ["proxy.request.failed", "proxy.request.started"]);
});

Deno.test("dead holder: a hold of 0.9.0, which names no process, ends by its time, or where a clock was set", async () => {
  using world = await createWorld({ isShared: true });
  const { now } = world.clock;
  for (
    const [user, expiresAt, held] of [
      ["ada", now() + 60_000, "1"],
      ["bob", now(), "0"],
      ["cyd", now() + 7_200_000, "0"],
    ] as const
  ) {
    await world.deposit(user, "5");
    const account = await storedAccount(world, user);
    const amount = fromDecimal("1");
    const id = world.deps.id("req");
    const common = { amount, used: zero, connectionId: null, budgets: [], holder: null };
    const value = encodeAccount({
      ...account,
      holds: [{ ...common, id, expiresAt }],
      held: amount,
    });
    await put(world, accountKey(world.projectId, user), value);
    assert.equal((await world.balance(user)).held, held, user);
  }
});
