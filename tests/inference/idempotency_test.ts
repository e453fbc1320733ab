import assert from "node:assert/strict";
import { chat, chatBody, chatStream, completionsPath, until, usageOf } from "../support/chat.ts";
import { completion, helloStream } from "../support/upstream.ts";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { allow, Device, pay, sharedWorld } from "../support/wallets.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { createKeptTexts, keptHead } from "../../src/store/kept_texts.ts";
import { emptyWrite } from "../../src/store/kv.ts";
import { storedRows } from "../support/books.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

// Loaded before the clock is moved, since loading takes real time.
await loadTokenizer();

const keyed = { headers: { "idempotency-key": "ask-1" } };
const day = 24 * 60 * 60 * 1000;
/** Idempotency keys of chats, and the rows that say when they end. */
const rowsOf = async (world: World) =>
  (await storedRows(world)).filter(({ key }) => key.includes("chat_replay"));
const kept = ["x-service-activity-id", "x-service-cost", "x-service-balance", "content-type"];

Deno.test("chat replay: the same key and body returns the first response again, for free", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const first = await chat(world, {}, keyed);
  await chat(world);
  const again = await chat(world, {}, {
    headers: { ...keyed.headers, "x-request-id": "second" },
  });
  assert.equal(again.status, 200);
  assert.deepEqual(again.body, first.body);
  for (const name of kept) {
    assert.equal(again.response.headers.get(name), first.response.headers.get(name), name);
  }
  assert.equal(first.response.headers.get("idempotent-replayed"), null);
  assert.equal(again.response.headers.get("idempotent-replayed"), "true");
  assert.equal(again.response.headers.get("x-request-id"), "second");
  assert.equal(world.upstream.calls.length, 2);
  const entries = await usageOf(world);
  assert.deepEqual(entries.map(({ idempotencyKey }) => idempotencyKey), [null, "ask-1"]);
});

Deno.test("chat replay: the order of fields and the way a user is named do not matter", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await chat(world, { temperature: 0.5, top_p: 1 }, keyed);
  const raw = `{"top_p":1,"temperature":0.5,"user":"ada",` +
    `"messages":[{"content":"Hi","role":"user"}],"model":"test-model"}`;
  const again = await world.json(completionsPath, { raw, ...keyed });
  assert.equal(again.response.headers.get("idempotent-replayed"), "true");
});

for (
  const [name, fields] of [
    ["other messages", { messages: [{ role: "user", content: "Ho" }] }],
    ["another field", { temperature: 1 }],
    ["a number that a double cannot hold", { seed: 2 ** 60 }],
  ] as const
) {
  Deno.test(`chat replay: the same key with ${name} is 422, running or completed`, async () => {
    using world = await createWorld();
    for (const user of ["ada", "bob"]) await world.deposit(user, "1");
    let during = { status: 0, body: { error: { code: "" } } };
    world.upstream.once(async () => {
      const { status, body } = await chat(world, fields, keyed);
      during = { status, body: { error: { code: body.error?.code } } };
      return completion();
    });
    await chat(world, {}, keyed);
    const { status, body } = await chat(world, fields, keyed);
    assert.deepEqual([status, body.error.code], [422, "idempotency_key_reused"]);
    assert.deepEqual([during.status, during.body.error.code], [422, "idempotency_key_reused"]);
    assert.equal(world.upstream.calls.length, 1);
    assert.equal((await world.balance("bob")).available, "1");
  });
}

Deno.test("chat replay: each user has their own keys, also while a request is running", async () => {
  using world = await createWorld();
  for (const user of ["ada", "bob"]) await world.deposit(user, "1");
  let during: Awaited<ReturnType<typeof chat>> | null = null;
  world.upstream.once(async () => {
    during = await chat(world, { user: "bob" }, keyed);
    return completion();
  });
  const first = await chat(world, {}, keyed);
  assert.equal(first.status, 200);
  assert.equal(during!.status, 200);
  assert.equal(world.upstream.calls.length, 2);
  for (const user of ["ada", "bob"]) {
    const again = await chat(world, { user }, keyed);
    assert.equal(again.response.headers.get("idempotent-replayed"), "true", user);
    assert.equal((await world.balance(user)).balance, "0.99998", user);
  }
  const other = await chat(world, { user: "bob", temperature: 1 }, keyed);
  assert.deepEqual([other.status, other.body.error.code], [422, "idempotency_key_reused"]);
});

Deno.test("chat replay: a response that 0.9.0 stored is replayed to its user only, and swept", async () => {
  using world = await createWorld();
  for (const user of ["ada", "bob"]) await world.deposit(user, "1");
  const first = await chat(world, {}, keyed);
  // As 0.9.0 kept it: as clear text, with an index of its own.
  const { kv, committer, config, randomBytes } = world.deps;
  const texts = createKeptTexts(config.secretsKeys, randomBytes);
  const write = emptyWrite();
  for (const { key, value } of await rowsOf(world)) {
    if (key[0] === "expiry") write.deletes.push(key);
    if (key[0] === "expiry" || !value) continue;
    const head = keptHead<{ expiresAt: number }>(value);
    const text = `${JSON.stringify(head)}\n${texts.textOf(key, value)}`;
    write.sets.push(
      { key, value: encodeUtf8(text) },
      { key: ["chat_replay_due", head.expiresAt, ...key.slice(1)], value: new Uint8Array() },
    );
  }
  await committer.commit(write);
  const again = await chat(world, {}, keyed);
  assert.deepEqual(again.body, first.body);
  assert.equal(again.response.headers.get("idempotent-replayed"), "true");
  const changed = await chat(world, { temperature: 1 }, keyed);
  assert.equal(changed.status, 422);
  const bob = await chat(world, { user: "bob" }, keyed);
  assert.equal(bob.response.headers.get("idempotent-replayed"), null);
  await world.clock.advance(day + 1_000);
  await world.app.sweep();
  assert.deepEqual(await rowsOf(world), []);
  assert.deepEqual(await kv.list({ prefix: ["chat_replay_due"], limit: 10 }), []);
});

Deno.test("chat replay: a repeated request waits for the response of the first one", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(async () => {
    await world.clock.sleep(1_000);
    return completion();
  });
  const asked = Promise.all(Array.from({ length: 5 }, () => chat(world, {}, keyed)));
  const answers = await until(world, asked);
  for (const { body } of answers) assert.deepEqual(body, answers[0]?.body);
  const replayed = answers.filter(({ response }) => response.headers.has("idempotent-replayed"));
  assert.equal(replayed.length, 4);
  assert.equal(world.upstream.calls.length, 1);
  assert.equal((await world.balance("ada")).balance, "0.99998");
});

Deno.test("chat replay: so does a repeated request that a wallet pays for", async () => {
  using world = await sharedWorld();
  await allow(new Device(world));
  await pay(world);
  world.upstream.once(async () => {
    await world.clock.sleep(1_000);
    return completion();
  });
  const asked = Promise.all([chat(world, {}, keyed), chat(world, {}, keyed)]);
  const [one, other] = await until(world, asked);
  assert.deepEqual([one?.status, one?.body.paywall, one?.body], [200, undefined, other?.body]);
  assert.equal(world.upstream.calls.length, 1);
});

Deno.test("chat replay: up to eight wait for one response, and a disconnected caller does not count", async () => {
  using world = await createWorld({ env: { REQUESTS_MAX: "24" } });
  await world.deposit("ada", "1");
  const { promise, resolve } = Promise.withResolvers<Response>();
  world.upstream.once(() => promise);
  const first = chat(world, {}, keyed);
  await world.until(() => world.upstream.calls.length >= 1);
  const leave = new AbortController();
  const left = Array.from({ length: 9 }, () => chat(world, {}, { ...keyed, signal: leave.signal }));
  await world.clock.advance(100);
  const beyond = await left.at(-1);
  assert.deepEqual([beyond?.status, beyond?.body.error.code], [429, "concurrency_limit"]);
  assert.equal(beyond?.response.headers.get("retry-after"), "1");
  leave.abort();
  await world.clock.advance(2_000);
  const others = Array.from({ length: 8 }, () => chat(world, {}, keyed));
  await world.clock.advance(100);
  resolve(completion());
  const answers = await until(world, Promise.all([first, ...others]));
  assert.deepEqual(answers.map(({ status }) => status), Array(9).fill(200));
  assert.equal(world.upstream.calls.length, 1);
});

Deno.test("chat replay: a response is kept for a day, and then the key is new", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await chat(world, {}, keyed);
  await world.clock.advance(day - 1);
  assert.ok((await chat(world, {}, keyed)).response.headers.has("idempotent-replayed"));
  await world.clock.advance(1);
  await world.app.sweep();
  const { status, response } = await chat(world, { temperature: 1 }, keyed);
  assert.equal(status, 200);
  assert.equal(response.headers.get("idempotent-replayed"), null);
  assert.equal(world.upstream.calls.length, 2);
});

Deno.test("chat replay: a day is a day also before the sweep, and sweeps keep newer responses", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  await chat(world, {}, keyed);
  await world.clock.advance(day);
  await chat(world, { temperature: 1 }, keyed);
  assert.equal(world.upstream.calls.length, 2);
  await world.app.sweep();
  const { response } = await chat(world, { temperature: 1 }, keyed);
  assert.equal(response.headers.get("idempotent-replayed"), "true");
  assert.equal(world.upstream.calls.length, 2);
});

Deno.test("chat replay: a response too large to store is marked so, and repeated upstream", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const sized = (content: string) =>
    completion({ choices: [{ index: 0, message: { content }, finish_reason: "stop" }] });
  world.upstream.reply(() => sized("\u20ac".repeat(21_000)));
  for (const calls of [1, 2]) {
    const { status, response } = await chat(world, {}, keyed);
    assert.equal(status, 200);
    assert.equal(response.headers.get("idempotency-stored"), "false");
    assert.equal(world.upstream.calls.length, calls);
  }
  world.upstream.reply(() => sized("\u20ac".repeat(20_000)));
  const { response } = await chat(world, {}, keyed);
  assert.equal(response.headers.get("idempotency-stored"), null);
  assert.ok((await chat(world, {}, keyed)).response.headers.has("idempotent-replayed"));
  assert.equal((await usageOf(world)).length, 3);
});

Deno.test("chat replay: a response is replayed even if its model is no longer served", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const first = await chat(world, {}, keyed);
  const { status } = await world.json(`/v1/admin/projects/${world.projectId}`, {
    method: "PATCH",
    body: { pricing: { models: { "test-model": null } } },
    key: adminKey,
  });
  assert.equal(status, 200);
  assert.equal((await chat(world)).status, 404);
  const again = await chat(world, {}, keyed);
  assert.deepEqual([again.status, again.body], [200, first.body]);
});

Deno.test("chat replay: what was not charged is not stored", async () => {
  using world = await createWorld();
  const walled = await chat(world, {}, keyed);
  assert.ok(walled.body.paywall);
  await world.deposit("ada", "1");
  world.upstream.once(() => Response.json({ error: { message: "no" } }, { status: 500 }));
  assert.equal((await chat(world, {}, keyed)).status, 502);
  world.upstream.once(() => Response.json({ error: { message: "no" } }, { status: 400 }));
  assert.equal((await chat(world, { temperature: 9 }, keyed)).status, 400);
  const { status, response } = await chat(world, {}, keyed);
  assert.deepEqual([status, response.headers.get("idempotent-replayed")], [200, null]);
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("chat replay: a stream is never replayed", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  for (let i = 0; i < 2; i++) {
    world.upstream.once(helloStream);
    const response = await chatStream(world, {}, keyed);
    assert.match(await response.text(), /Hello/);
    assert.equal(response.headers.get("idempotent-replayed"), null);
  }
  assert.equal((await usageOf(world)).length, 2);
});

Deno.test("chat replay: a key counts for its project and its operation", async () => {
  using world = await createWorld();
  const other = await world.makeProject();
  const deposit = { body: { user: "ada", amount: "1" }, ...keyed };
  for (const key of [world.apiKey, other.apiKey]) {
    const { status } = await world.json("/v1/user/balance/deposit", { ...deposit, key });
    assert.equal(status, 200);
    const { response } = await chat(world, {}, { ...keyed, key });
    assert.equal(response.headers.get("idempotent-replayed"), null);
  }
  assert.equal(world.upstream.calls.length, 2);
});

for (
  const [name, key] of [["empty", ""], ["a blank in it", "a b"], ["too long", "k".repeat(256)]]
) {
  Deno.test(`chat replay: a key that is ${name} is 400`, async () => {
    using world = await createWorld();
    const headers = { "idempotency-key": key ?? "" };
    const { status, body } = await chat(world, {}, { headers });
    assert.deepEqual([status, body.error.param], [400, "Idempotency-Key"]);
  });
}

Deno.test("chat replay: the mark of a dead process ends with its hold", async () => {
  using world = await createWorld({ isShared: true });
  await world.deposit("ada", "1");
  using dead = await createWorld({ shareWith: world });
  dead.upstream.once(() => {
    // From here on it writes nothing, and receives nothing.
    dead.deps.committer.commit = () => new Promise(() => {});
    return new Promise(() => {});
  });
  dead.call(completionsPath, { body: chatBody(), ...keyed }).catch(() => {});
  await world.clock.advance(57_000);
  assert.equal(dead.upstream.calls.length, 1);
  assert.notEqual((await world.balance("ada")).held, "0");
  const askedAt = world.clock.now();
  const { status } = await until(world, chat(world, {}, keyed));
  assert.equal(status, 200);
  assert.ok(world.clock.now() - askedAt >= 3_000);
  assert.deepEqual(await world.balance("ada"), {
    balance: "0.99998",
    held: "0",
    available: "0.99998",
  });
});

Deno.test("chat replay: a request that never completed leaves nothing behind after a day", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  using lost = await createWorld({ shareWith: world });
  lost.upstream.once(() => {
    lost.deps.committer.commit = () => Promise.reject(new Error("the store is gone"));
    return Response.json({}, { status: 500 });
  });
  await lost.call(completionsPath, { body: chatBody(), ...keyed });
  const marks = async () => (await rowsOf(world)).length;
  await world.clock.advance(23 * 60 * 60 * 1000);
  await world.app.sweep();
  assert.equal(await marks(), 2);
  await world.clock.advance(2 * 60 * 60 * 1000);
  await world.app.sweep();
  assert.equal(await marks(), 0);
});

Deno.test("chat replay: sent to two processes at once, it is charged once", async () => {
  using world = await createWorld({ isShared: true });
  await world.deposit("ada", "1");
  using second = await createWorld({ shareWith: world });
  const slow = async () => {
    await world.clock.sleep(500);
    return completion();
  };
  world.upstream.reply(slow);
  second.upstream.reply(slow);
  const asked = [world, second, world, second].map((each) => chat(each, {}, keyed));
  const answers = await until(world, Promise.all(asked), 100);
  for (const { body } of answers) assert.deepEqual(body, answers[0]?.body);
  assert.equal(world.upstream.calls.length + second.upstream.calls.length, 1);
  assert.equal((await world.balance("ada")).balance, "0.99998");
});

Deno.test("chat replay: a repeated request counts toward no limit of its key, running or completed", async () => {
  const limits = { key: { requestsPerMinute: 1, concurrent: 1 } };
  using world = await createWorld({ project: { limits } });
  await world.deposit("ada", "1");
  let during: ReturnType<typeof chat> | null = null;
  world.upstream.once(async () => {
    during = chat(world, {}, keyed);
    await new Promise((resolve) => setTimeout(resolve, 20));
    return completion();
  });
  const first = await chat(world, {}, keyed);
  await world.clock.advance(200);
  const again = await chat(world, {}, keyed);
  for (const { status, body } of [await (during ?? assert.fail()), again]) {
    assert.deepEqual([status, body], [200, first.body]);
  }
  assert.equal((await chat(world)).status, 429, "anything new does");
  assert.equal(world.upstream.calls.length, 1);
});
