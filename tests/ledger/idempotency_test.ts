import assert from "node:assert/strict";
import { fromBytes } from "../../src/base/json.ts";
import { checkBooks, storeAsText, whileMoving } from "../support/books.ts";
import { settle } from "../support/clock.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import { adminKey, createWorld, type World } from "../support/world.ts";

const depositPath = "/v1/user/balance/deposit";
const chargePath = "/v1/user/charge";

function keyed(key: string, body: unknown, more: Record<string, string> = {}) {
  return { body, headers: { "idempotency-key": key, ...more } };
}

const yearMs = 365 * 24 * 60 * 60 * 1000;

const sameAgain: [
  label: string,
  body: Record<string, unknown>,
  headers?: Record<string, string>,
][] = [
  ["the same", { user: "ada", amount: "5", metadata: { a: 1, b: { c: 2, d: 3 } } }],
  ["keys in another order", { metadata: { b: { d: 3, c: 2 }, a: 1 }, amount: "5", user: "ada" }],
  ["the amount written otherwise", {
    user: "ada",
    amount: "05.000",
    metadata: { a: 1, b: { c: 2, d: 3 } },
  }],
  ["the user in the header", { amount: "5", metadata: { a: 1, b: { c: 2, d: 3 } } }, {
    "x-service-user": "ada",
  }],
];

Deno.test("idempotency: requests are compared by meaning, not by spelling", async () => {
  using world = await createWorld();
  const [first] = sameAgain;
  const original = await world.json(depositPath, keyed("order-1", first?.[1]));
  for (const [label, body, headers] of sameAgain) {
    const { status, body: answer, response } = await world.json(
      depositPath,
      keyed("order-1", body, headers),
    );
    assert.equal(status, 200, label);
    assert.deepEqual(answer, original.body, label);
    assert.equal(response.headers.get("idempotent-replayed"), "true", label);
  }
  assert.equal((await world.balance("ada")).balance, "5");
});

Deno.test("idempotency: a request that is never recorded does not refuse another one", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  // While a write is under way the next ones wait, and then go together.
  const gate = createGate();
  store.atomic = async (write, real) => {
    await gate.opened;
    // The write of the first deposit never lands.
    const isFirst = write.sets.some(({ key, value }) =>
      key[0] === "entry" && fromBytes<{ delta: string }>(value).delta === "5"
    );
    if (isFirst) throw new TypeError("the disk is full");
    return await real(write);
  };
  const earlier = world.deposit("ada", "1");
  const both = ["5", "7"].map((amount) =>
    world.json(depositPath, keyed("order-1", { user: "ada", amount }))
  );
  await settle();
  gate.open();
  await earlier;
  const [first, second] = await Promise.all(both);
  assert.equal(first?.status, 503);
  assert.notEqual(second?.status, 422, JSON.stringify(second?.body));
  const again = await world.json(depositPath, keyed("order-1", { user: "ada", amount: "7" }));
  assert.equal(again.status, 200);
  assert.equal((await world.balance("ada")).balance, "9");
});

Deno.test("idempotency: another user, amount or metadata is 422 and changes nothing", async () => {
  using world = await createWorld();
  await world.json(depositPath, keyed("order-1", { user: "ada", amount: "5", metadata: { a: 1 } }));
  const before = await storeAsText(world);
  for (
    const body of [
      { user: "Ada", amount: "5", metadata: { a: 1 } },
      { user: "ada", amount: "5.000000001", metadata: { a: 1 } },
      { user: "ada", amount: "5", metadata: { a: "1" } },
      { user: "ada", amount: "5", metadata: { a: 1, b: null } },
      { user: "ada", amount: "5", metadata: {} },
      { user: "ada", amount: "5" },
    ]
  ) {
    const { status, body: answer } = await world.json(depositPath, keyed("order-1", body));
    assert.equal(status, 422, JSON.stringify(body));
    assert.equal(answer.error.code, "idempotency_key_reused");
  }
  assert.equal(await storeAsText(world), before);
});

Deno.test("idempotency: a key belongs to one project and one operation", async () => {
  using world = await createWorld();
  const other = await world.makeProject();
  const options = keyed("one-key", { user: "ada", amount: "2" });
  const answers = [
    await world.json(depositPath, options),
    await world.json(chargePath, options),
    await world.json(depositPath, { ...options, key: other.apiKey }),
  ];
  for (const { status, body, response } of answers) {
    assert.equal(status, 200);
    assert.equal(body.success, true);
    assert.equal(response.headers.get("idempotent-replayed"), null);
  }
  assert.equal((await world.balance("ada")).balance, "0");
});

Deno.test("idempotency: a key of a money operation never expires", async () => {
  using world = await createWorld();
  const options = keyed("order-1", { user: "ada", amount: "5" });
  const first = await world.json(depositPath, options);
  await world.clock.advance(3 * yearMs);
  await world.app.sweep();
  const later = await world.json(depositPath, options);
  assert.deepEqual(later.body, first.body);
  assert.equal((await world.balance("ada")).balance, "5");
});

Deno.test("idempotency: an archived project still replays what it recorded before", async () => {
  using world = await createWorld();
  const options = keyed("order-1", { user: "ada", amount: "5" });
  const first = await world.json(depositPath, options);
  const path = `/v1/admin/projects/${world.projectId}/archive`;
  await world.json(path, { method: "POST", key: adminKey });
  const later = await world.json(depositPath, options);
  assert.equal(later.status, 200);
  assert.deepEqual(later.body, first.body);
});

Deno.test("idempotency: 30 at once under one key are recorded once, in one process and in two", async () => {
  for (const processes of [1, 2]) {
    using world = await createWorld();
    using second = await createWorld({ shareWith: world });
    const worlds: World[] = processes === 1 ? [world] : [world, second];
    const options = keyed("order-1", { user: "ada", amount: "5" });
    const work = Promise.all(
      Array.from(
        { length: 30 },
        (_, n) => (worlds[n % processes] ?? world).json(depositPath, options),
      ),
    );
    const answers = await whileMoving(world.clock, work, { stepMs: 5 });
    for (const { status, body } of answers) {
      assert.equal(status, 200);
      assert.deepEqual(body, answers[0]?.body);
    }
    const firsts = answers.filter(({ response }) => !response.headers.has("idempotent-replayed"));
    assert.equal(firsts.length, 1, "one of them is the first");
    assert.equal((await checkBooks(world, "ada")).length, 1);
  }
});

Deno.test("idempotency: one key at once for two users is one deposit and one 422", async () => {
  using world = await createWorld();
  const work = ["ada", "bob"].map((user) =>
    world.json(depositPath, keyed("order-1", { user, amount: "5" }))
  );
  const answers = await whileMoving(world.clock, Promise.all(work), { stepMs: 5 });
  assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 422]);
  const booked = [await world.balance("ada"), await world.balance("bob")];
  assert.deepEqual(booked.map(({ balance }) => balance).sort(), ["0", "5"]);
});

Deno.test("idempotency: a key is 1 to 255 visible ASCII characters", async () => {
  using world = await createWorld();
  const utf8 = (text: string) => String.fromCharCode(...new TextEncoder().encode(text));
  for (const key of ["", "a b", "é", utf8("é"), utf8("😀"), "a\tb", "a".repeat(256), "\u0080"]) {
    const { status, body } = await world.json(
      depositPath,
      keyed(key, { user: "ada", amount: "1" }),
    );
    assert.equal(status, 400, JSON.stringify(key));
    assert.equal(body.error.param, "Idempotency-Key");
  }
  assert.equal((await world.balance("ada")).balance, "0");
  for (const key of ["!", "~", '"quoted"', "a,b", "a".repeat(255)]) {
    const { status } = await world.json(depositPath, keyed(key, { user: "ada", amount: "1" }));
    assert.equal(status, 200, JSON.stringify(key));
  }
  assert.equal((await world.balance("ada")).balance, "5");
});

Deno.test("idempotency: without a key every request counts", async () => {
  using world = await createWorld();
  for (let i = 0; i < 3; i++) await world.deposit("ada", "1");
  assert.equal((await world.balance("ada")).balance, "3");
});
