import assert from "node:assert/strict";
import { formatAmount, fromDecimal } from "../../src/base/money.ts";
import { type QueuedOp, takeBatch } from "../../src/ledger/account_queue.ts";
import { chatBody, chatPath, checkBooks, storedAccount, whileMoving } from "../support/books.ts";
import { createScriptedStore } from "../support/store.ts";
import { completion, usage } from "../support/upstream.ts";
import { operate } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

/** All or nothing: a response gets its 100 tokens or the paywall. */
const wholeAnswers = {
  pricing: {
    models: {
      "test-model": { input: "1", output: "2", maxOutputTokens: 100, minOutputTokens: 100 },
    },
  },
};

const promptBytes = JSON.stringify(chatBody("ada")).length;
/** The hold of one response, and its cost when it uses all of it. */
const answerUnits = BigInt(promptBytes + 200) * 1000n;

/** Every response uses its whole hold. */
function useEverything(world: World): void {
  world.upstream.reply(() => completion({ usage: usage(promptBytes, 100) }));
}

function split(answers: { status: number; body: Body }[]) {
  for (const { status, body } of answers) assert.equal(status, 200, JSON.stringify(body));
  return {
    answered: answers.filter(({ body }) => body.paywall === undefined),
    refused: answers.filter(({ body }) => body.paywall?.reason === "insufficient_funds"),
  };
}

Deno.test("concurrency: of 200 chats at once a user who can pay for ten gets ten", async () => {
  using world = await createWorld({ project: wholeAnswers });
  useEverything(world);
  await world.deposit("ada", formatAmount(10n * answerUnits + 500n));
  const work = Array.from({ length: 200 }, () => world.json(chatPath, { body: chatBody("ada") }));
  const { answered, refused } = split(await whileMoving(world.clock, Promise.all(work)));
  assert.equal(answered.length, 10);
  assert.equal(refused.length, 190);
  assert.equal(world.upstream.calls.length, 10, "a refused chat is never sent");
  for (const { body } of refused) {
    assert.equal(body.choices[0].finish_reason, "stop");
    assert.equal(body.usage.total_tokens, 0);
  }
  assert.deepEqual(await world.balance("ada"), {
    balance: "0.0000005",
    held: "0",
    available: "0.0000005",
  });
  const entries = await checkBooks(world, "ada");
  assert.equal(entries.filter(({ kind }) => kind === "usage").length, 10);
});

Deno.test("concurrency: the same through two processes on one store", async () => {
  using world = await createWorld({ isShared: true, project: wholeAnswers });
  using other = await createWorld({ shareWith: world });
  [world, other].forEach(useEverything);
  await world.deposit("ada", formatAmount(10n * answerUnits));
  const work = Array.from(
    { length: 60 },
    (_, n) => (n % 2 ? world : other).json(chatPath, { body: chatBody("ada") }),
  );
  const { answered, refused } = split(await whileMoving(world.clock, Promise.all(work)));
  assert.equal(answered.length, 10);
  assert.equal(refused.length, 50);
  assert.equal((await world.balance("ada")).balance, "0");
  assert.equal((await storedAccount(world, "ada")).holds.length, 0);
  await checkBooks(world, "ada");
});

Deno.test("concurrency: a user whose responses cost little gets more than could be held for at once", async () => {
  using world = await createWorld({ project: wholeAnswers });
  // 10 * 0.000001 + 5 * 0.000002 each, of a much larger hold.
  await world.deposit("ada", formatAmount(2n * answerUnits));
  const work = Array.from({ length: 12 }, () => world.json(chatPath, { body: chatBody("ada") }));
  const { answered } = split(await whileMoving(world.clock, Promise.all(work)));
  assert.equal(answered.length, 12);
  const left = 2n * answerUnits - 12n * 20_000n;
  assert.equal((await world.balance("ada")).balance, formatAmount(left));
  await checkBooks(world, "ada");
});

Deno.test("concurrency: 100 deposits and 100 charges at once sum up exactly", async () => {
  using world = await createWorld();
  await world.deposit("ada", "3");
  const post = (path: string, amount: string) =>
    world.json(path, { body: { user: "ada", amount } });
  const work = Array.from(
    { length: 200 },
    (_, n) =>
      n % 2
        ? post("/v1/user/balance/deposit", "0.100000001")
        : post("/v1/user/charge", "0.300000007"),
  );
  const answers = await Promise.all(work);
  for (const { status, body } of answers) {
    assert.equal(status, 200);
    assert.ok(fromDecimal(body.balance) >= 0n);
  }
  const charges =
    answers.filter(({ body }) => body.success && body.amount === "0.300000007").length;
  const expected = 3n * 10n ** 9n + 100n * 100_000_001n - BigInt(charges) * 300_000_007n;
  assert.ok(charges < 100, "some could not be paid");
  assert.equal((await world.balance("ada")).balance, formatAmount(expected));
  const entries = await checkBooks(world, "ada");
  assert.equal(entries.length, 101 + charges);
});

Deno.test("concurrency: the same from two processes, each with its own key twice", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  const post = (n: number) =>
    (n % 2 ? world : other).json("/v1/user/balance/deposit", {
      body: { user: "ada", amount: "0.01" },
      headers: { "idempotency-key": `order-${n % 50}` },
    });
  // Each key is sent once to one process, and once, with n + 25, to the other.
  const work = Array.from({ length: 50 }, (_, n) => post(n % 25 * 2 + (n < 25 ? 0 : 1)))
    .concat(Array.from({ length: 50 }, (_, n) => post(n)));
  const answers = await whileMoving(world.clock, Promise.all(work), { stepMs: 5 });
  for (const { status, body } of answers) assert.equal(status, 200, JSON.stringify(body));
  assert.equal((await world.balance("ada")).balance, "0.5");
  assert.equal((await checkBooks(world, "ada")).length, 50);
});

Deno.test("concurrency: 300 users at once do not affect each other", async () => {
  using world = await createWorld();
  const users = Array.from({ length: 300 }, (_, n) => `user-${n}`);
  await Promise.all(users.map((user) => world.deposit(user, "1")));
  const work = users.map((user) => world.json(chatPath, { body: chatBody(user) }));
  for (const { status, body } of await Promise.all(work)) {
    assert.equal(status, 200);
    assert.equal(body.usage.cost_exact, "0.00002");
  }
  for (const user of users) assert.equal((await world.balance(user)).balance, "0.99998");
});

Deno.test("concurrency: if others are always faster nothing is recorded, and the caller may retry", async () => {
  const store = createScriptedStore();
  using world = await createWorld({ wrapKv: store.wrap });
  await world.deposit("ada", "1");
  const request = {
    body: { user: "ada", amount: "0.25" },
    headers: { "idempotency-key": "order-1" },
  };
  store.atomic = () => Promise.resolve(null);
  const refused = await whileMoving(world.clock, world.json("/v1/user/charge", request));
  assert.deepEqual([refused.status, refused.body.error.code], [503, "account_contended"]);
  assert.equal(refused.response.headers.get("retry-after"), "1");
  store.atomic = null;
  assert.equal((await world.balance("ada")).balance, "1");
  const booked = await world.json("/v1/user/charge", request);
  assert.deepEqual([booked.status, booked.body.balance], [200, "0.75"]);
});

Deno.test("concurrency: no one is refused because of what another process has recorded since", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  await other.deposit("ada", "0.00001");
  assert.equal(
    (await other.json(chatPath, { body: chatBody("ada") })).body.paywall?.reason,
    "insufficient_funds",
  );
  await world.deposit("ada", "1");
  const { body } = await other.json(chatPath, { body: chatBody("ada") });
  assert.equal(body.paywall, undefined);
});

Deno.test("concurrency: a response costs what another process has just set as its price", async () => {
  using world = await createWorld();
  using other = await createWorld({ shareWith: world });
  await world.deposit("ada", "1");
  const ask = async () =>
    (await other.json(chatPath, { body: chatBody("ada") })).body.usage.cost_exact;
  assert.equal(await ask(), "0.00002");
  const models = { "test-model": { input: "10", output: "20", maxOutputTokens: 1000 } };
  await operate(world, "", { method: "PATCH", body: { pricing: { models } } });
  assert.equal(await ask(), "0.0002");
});

Deno.test("concurrency: one write takes no more operations, bytes and rows than it can carry", () => {
  const batchOf = (length: number, operation: Partial<QueuedOp["operation"]>) => {
    const waiting = Array.from({ length }, (): QueuedOp => ({
      operation: { reads: [], estimatedBytes: 1, ...operation },
      decide: () => assert.fail(),
      reject: () => {},
    }));
    const taken = takeBatch(waiting, 10).length;
    assert.equal(waiting.length, length - taken, "the others wait on");
    return taken;
  };
  assert.equal(batchOf(5, {}), 5);
  assert.equal(batchOf(100, {}), 64);
  assert.equal(batchOf(100, { estimatedBytes: 64 * 1024 }), 4);
  assert.equal(batchOf(100, { reads: [["row", 1], ["row", 2]] }), 5);
  assert.equal(batchOf(100, { reads: [["row", 1]], uniqueKey: ["row", 2] }), 5);
  assert.equal(batchOf(2, { estimatedBytes: 1024 * 1024 }), 1, "at least one");
});
