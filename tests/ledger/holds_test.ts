import assert from "node:assert/strict";
import type { Kv } from "../../src/store/kv.ts";
import { formatAmount } from "../../src/base/money.ts";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { holdingPrefix } from "../../src/store/keys.ts";
import {
  chatBody,
  chatPath,
  checkBooks,
  storedAccount,
  storedEntries,
  whileMoving,
} from "../support/books.ts";
import { settle } from "../support/clock.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import {
  chunk,
  completion,
  fedStream,
  readEvents,
  usage,
  usageChunk,
} from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

// Loaded once: a hand-moved clock would run ahead of the import.
await loadTokenizer();

const streamed = (user: string) => ({ body: chatBody(user, { stream: true }) });

/** Starts a streamed response that the test feeds, and reads it as a client does. */
async function startStream(world: World, user: string) {
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = await world.call(chatPath, streamed(user));
  return { stream, response, events: readEvents(response) };
}

/** The hold of one chat of `chatBody`: the difference of the available balance. */
const holdUnits = BigInt(JSON.stringify(chatBody("ada", { stream: true })).length + 200) * 1000n;

Deno.test("holds: a long streamed response renews its hold, and is charged exactly", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { stream, events } = await startStream(world, "ada");
  for (let tens = 0; tens < 15; tens++) {
    stream.send(chunk({ content: `${tens} ` }));
    await world.clock.advance(10_000);
    const [hold] = (await storedAccount(world, "ada")).holds;
    assert.ok(hold && hold.expiresAt > world.clock.now() + 20_000, `after ${tens * 10} s`);
    assert.equal(hold.amount, holdUnits);
  }
  stream.send(chunk({}, "stop"));
  stream.send(usageChunk(usage(8, 60)));
  stream.send("[DONE]");
  stream.end();
  assert.equal((await events).at(-1), "[DONE]");
  // 8 * 0.000001 + 60 * 0.000002
  assert.deepEqual(await world.balance("ada"), {
    balance: "0.999872",
    held: "0",
    available: "0.999872",
  });
  const entries = await checkBooks(world, "ada");
  assert.deepEqual(entries.map(({ kind }) => kind), ["deposit", "usage"]);
});

Deno.test("holds: a short response is one hold and one charge, and no renewal", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  const before = store.writes.length;
  await world.json(chatPath, { body: chatBody("ada") });
  assert.equal(store.writes.length - before, 2);
});

/** A process that dies during a response, with its usage recorded once, and one that survives. */
async function dyingProcess(world: World, store: { dead: boolean }) {
  await world.deposit("ada", "1");
  const { stream, events } = await startStream(world, "ada");
  events.catch(() => {});
  stream.send(chunk({ role: "assistant", content: "" }));
  stream.send(chunk({ content: "Hello there" }));
  await world.clock.advance(25_000);
  const [hold] = (await storedAccount(world, "ada")).holds;
  assert.ok(hold, "the hold stands");
  store.dead = true;
  return hold;
}

Deno.test("holds: an expired hold does not count at a read, except for its recorded use", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ isShared: true, wrapKv: store.wrap });
  using other = await createWorld({ shareWith: world });
  const hold = await dyingProcess(world, store);
  // Our own count: 8 tokens of prompt and 2 of output.
  assert.equal(hold.used, 12_000n);
  await world.clock.advance(hold.expiresAt - world.clock.now() - 1);
  const standing = await other.balance("ada");
  assert.equal(standing.balance, "1");
  assert.notEqual(standing.held, "0");
  await world.clock.advance(1);
  const ended = { balance: "0.999988", held: "0", available: "0.999988" };
  assert.deepEqual(await other.balance("ada"), ended);
  assert.equal((await storedEntries(other, "ada")).length, 1, "reading writes nothing");
});

Deno.test("holds: the next operation leaves an expired entry for the recorded use", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  using other = await createWorld({ shareWith: world });
  const hold = await dyingProcess(world, store);
  await world.clock.advance(60_000);
  await other.deposit("ada", "1");
  const entries = await checkBooks(other, "ada");
  assert.deepEqual(
    entries.map(({ kind, delta, balanceAfter }) => [kind, delta, balanceAfter]),
    [
      ["deposit", "1", "1"],
      ["expired", "-0.000012", "0.999988"],
      ["deposit", "1", "1.999988"],
    ],
  );
  assert.equal(entries[1]?.id, hold.id.replace("req_", "act_"));
  assert.equal((await storedAccount(other, "ada")).holds.length, 0);
});

Deno.test("holds: use beyond a hold is charged the same at a read and by the record", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  using other = await createWorld({ shareWith: world });
  // Just enough for the two holds.
  await world.deposit("ada", formatAmount(2n * holdUnits));
  for (const used of [usage(10, 300), null]) {
    const { stream, events } = await startStream(world, "ada");
    events.catch(() => {});
    stream.send(chunk({ content: "Hi" }, null, used ? { usage: used } : {}));
  }
  await world.clock.advance(25_000);
  const { holds } = await storedAccount(world, "ada");
  // 10 * 0.000001 + 300 * 0.000002, although far less was held.
  assert.equal(holds.filter(({ used }) => used === 610_000n).length, 1);
  store.dead = true;
  await world.clock.advance(60_000);
  const read = await other.balance("ada");
  await other.app.sweep();
  assert.equal((await storedAccount(other, "ada")).holds.length, 0);
  assert.deepEqual(await other.balance("ada"), read);
  await checkBooks(other, "ada");
});

Deno.test("holds: the sweep reaches accounts that no one touches any more", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  using other = await createWorld({ shareWith: world });
  await dyingProcess(world, store);
  await world.clock.advance(60_000);
  await other.app.sweep();
  const account = await storedAccount(other, "ada");
  assert.equal(account.holds.length, 0);
  assert.equal(account.balance, 999_988_000n);
  assert.equal((await checkBooks(other, "ada")).at(-1)?.kind, "expired");
  const listed = await other.deps.kv.list({ prefix: holdingPrefix, limit: 10 });
  assert.equal(listed.length, 0, "an account without holds is forgotten");
});

Deno.test("holds: the sweep leaves an active hold alone", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { response, events } = await startStream(world, "ada");
  await world.app.sweep();
  assert.equal((await storedAccount(world, "ada")).holds.length, 1);
  assert.equal((await world.deps.kv.list({ prefix: holdingPrefix, limit: 10 })).length, 1);
  world.app.running.cutAll(new Error("the test is over") as never);
  await events.catch(() => {});
  assert.ok(response.ok);
});

for (const [pace, sweeps] of [["that has the time", 1], ["that is slow", 2]] as const) {
  Deno.test(`holds: a sweep ${pace} reaches 250 accounts in ${sweeps}, and continues where it stopped`, async () => {
    const store = createScriptedStore();
    using world = await createWorld({ wrapKv: store.wrap });
    using other = await createWorld({ shareWith: world, wrapKv: slowList });
    world.upstream.reply(() => new Promise(() => {}));
    const users = Array.from({ length: 250 }, (_, n) => `user-${n}`);
    await Promise.all(users.map((user) => world.deposit(user, "1")));
    for (const user of users) world.json(chatPath, { body: chatBody(user) }).catch(() => {});
    await world.until(() => world.upstream.calls.length >= users.length);
    store.dead = true;
    await world.clock.advance(61_000);
    function slowList(kv: Kv): Kv {
      return {
        ...kv,
        async list(options) {
          if (sweeps > 1 && options.prefix[0] === "holding") await other.clock.advance(2_000);
          return await kv.list(options);
        },
      };
    }
    for (let n = 1; n <= sweeps; n++) {
      await other.app.sweep();
      const held = await Promise.all(users.map((user) => storedAccount(other, user)));
      const left = held.filter(({ holds }) => holds.length > 0).length;
      assert.equal(left, n < sweeps ? 50 : 0);
    }
  });
}

Deno.test("holds: a sweep at the same time as a new hold does not hide it from later sweeps", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  using other = await createWorld({ shareWith: world });
  await world.deposit("ada", "1");
  // A finished response: the account is listed, and holds nothing.
  await world.json(chatPath, { body: chatBody("ada") });
  const gate = createGate();
  store.atomic = async (write, real) => {
    store.atomic = null;
    await gate.opened;
    return await real(write);
  };
  // While this write is under way, the sweep and then the new hold wait for the next one.
  const deposit = world.deposit("ada", "1");
  await settle();
  const sweep = world.app.sweep();
  await settle();
  const answer = startStream(world, "ada");
  await settle();
  gate.open();
  await Promise.all([deposit, sweep]);
  (await answer).events.catch(() => {});
  assert.equal((await storedAccount(world, "ada")).holds.length, 1);
  store.dead = true;
  await world.clock.advance(120_000);
  await other.app.sweep();
  assert.equal((await storedAccount(other, "ada")).holds.length, 0, "the sweep reached it");
});

Deno.test("holds: a call whose renewals fail is cut before its hold ends", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  const { stream, events } = await startStream(world, "ada");
  stream.send(chunk({ content: "Hello" }));
  await settle();
  store.dead = true;
  await world.clock.advance(59_000);
  await stream.cancelled;
  // The charge is retried for as long as a hold can live.
  await world.clock.advance(62_000);
  const last = (await events).at(-1);
  assert.equal(typeof last.error.message, "string");
  assert.notEqual(last, "[DONE]");
});

Deno.test("holds: settling after the expiry is refused, and nothing is charged twice", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  using other = await createWorld({ shareWith: world });
  await world.deposit("ada", "1");
  const gate = createGate();
  const { stream, events } = await startStream(world, "ada");
  stream.send(chunk({ content: "Hello" }));
  stream.send(chunk({}, "stop"));
  await settle();
  // The charge is delayed on its way to the store until the hold has expired and was ended
  // elsewhere.
  store.atomic = async (write, real) => {
    store.atomic = null;
    await gate.opened;
    return await real(write);
  };
  stream.send("[DONE]");
  stream.end();
  await settle();
  // No time passes for the write, which nobody would wait for.
  world.clock.set(61_000);
  await other.deposit("ada", "1");
  gate.open();
  const last = (await events).at(-1);
  assert.equal(last.error?.code, "hold_lost");
  const entries = await checkBooks(other, "ada");
  assert.deepEqual(entries.map(({ kind, delta }) => [kind, delta]), [
    ["deposit", "1"],
    ["expired", "0"],
    ["deposit", "1"],
  ]);
});

Deno.test("holds: 256 at once, and the next one is 429 with Retry-After", async () => {
  using world = await createWorld({ project: { limits: { user: { concurrent: null } } } });
  await world.deposit("ada", "1");
  const gate = createGate();
  world.upstream.reply(async () => {
    await gate.opened;
    return completion({ usage: usage(1, 1) });
  });
  const answers = Array.from(
    { length: 256 },
    () => world.json(chatPath, { body: chatBody("ada") }),
  );
  await world.until(() => world.upstream.calls.length >= 256);
  const { status, body, response } = await world.json(chatPath, { body: chatBody("ada") });
  assert.equal(status, 429);
  assert.equal(body.error.code, "concurrency_limit");
  assert.equal(body.error.type, "rate_limit_error");
  assert.match(response.headers.get("retry-after") ?? "", /^\d+$/);
  assert.equal((await storedAccount(world, "ada")).holds.length, 256);
  await world.deposit("bob", "1");
  const bobs = world.json(chatPath, { body: chatBody("bob") });
  gate.open();
  assert.equal((await bobs).status, 200, "another user is not in the way");
  for (const answer of await Promise.all(answers)) assert.equal(answer.status, 200);
  assert.equal((await world.json(chatPath, { body: chatBody("ada") })).status, 200);
  // 257 responses of one token in and one out.
  assert.equal((await world.balance("ada")).balance, "0.999229");
  await checkBooks(world, "ada");
});

/** A user who can pay for one response at a time, with one under way. */
async function oneUnderWay(world: World) {
  await world.deposit("ada", "0.000320");
  return await startStream(world, "ada");
}

Deno.test("holds: a request waits 2 s for running calls, then reports that they are running", async () => {
  using world = await createWorld();
  const { stream, events } = await oneUnderWay(world);
  let answered = false;
  const second = world.json(chatPath, { body: chatBody("ada") });
  second.then(() => (answered = true));
  await world.clock.advance(1_990);
  assert.equal(answered, false);
  await world.clock.advance(20);
  assert.equal(answered, true);
  const { status, body, response } = await second;
  assert.equal(status, 200);
  assert.equal(body.paywall.reason, "balance_held");
  assert.match(body.choices[0].message.content, /still running/);
  assert.ok(body.choices[0].message.content.includes(body.paywall.url));
  assert.equal(response.headers.get("x-service-paywall"), "balance_held");
  assert.equal(world.upstream.calls.length, 1);
  stream.send("[DONE]");
  stream.end();
  await events;
});

Deno.test("holds: a waiting request is served as soon as the one before it ends", async () => {
  using world = await createWorld();
  const { stream, events } = await oneUnderWay(world);
  const second = world.json(chatPath, { body: chatBody("ada") });
  await world.clock.advance(1_500);
  assert.equal(world.upstream.calls.length, 1);
  stream.send(chunk({ content: "Hi" }));
  stream.send(chunk({}, "stop"));
  stream.send(usageChunk(usage(1, 1)));
  stream.send("[DONE]");
  stream.end();
  await events;
  await settle();
  const { body } = await second;
  assert.equal(body.paywall, undefined);
  assert.equal(body.choices[0].message.content, "Hello there");
  // 0.000320 - 0.000003 - 0.00002
  assert.equal((await world.balance("ada")).balance, "0.000297");
  await checkBooks(world, "ada");
});

Deno.test("holds: a hold that ends in another process is noticed by a waiting request", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  const { stream, events } = await oneUnderWay(world);
  const second = other.json(chatPath, { body: chatBody("ada") });
  await world.clock.advance(500);
  stream.send(chunk({ content: "Hi" }, "stop"));
  stream.send(usageChunk(usage(1, 1)));
  stream.send("[DONE]");
  stream.end();
  await events;
  const { body } = await whileMoving(world.clock, second, { stepMs: 100, stepsMax: 10 });
  assert.equal(body.paywall, undefined);
  await checkBooks(world, "ada");
});

Deno.test("holds: a user who is simply out of money does not wait", async () => {
  using world = await createWorld();
  await world.deposit("ada", "0.000020");
  const { body } = await world.json(chatPath, { body: chatBody("ada") });
  assert.equal(body.paywall.reason, "insufficient_funds");
  assert.doesNotMatch(body.choices[0].message.content, /still running/);
  assert.equal(world.upstream.calls.length, 0);
});
