import assert from "node:assert/strict";
import { toBytes } from "../../src/base/json.ts";
import { encodeUtf8 } from "../../src/base/utf8.ts";
import { formatAmount } from "../../src/base/money.ts";
import { decodeBudget } from "../../src/store/budgets.ts";
import { budgetKey, holdingPrefix, keySpendKey } from "../../src/store/keys.ts";
import { chatBody, chatPath, checkBooks, storedEntries } from "../support/books.ts";
import { until } from "../support/chat.ts";
import { createGate, createScriptedStore } from "../support/store.ts";
import {
  chunk,
  completion,
  fedStream,
  readEvents,
  usage,
  usageChunk,
} from "../support/upstream.ts";
import { put, verify } from "../support/verify.ts";
import { operate } from "../support/webhooks.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

/** Each call costs its fee, 0.01. */
const feeOnly = {
  requestFee: "0.01",
  models: { "test-model": { input: "0", output: "0", maxOutputTokens: 100, reasoning: false } },
};

async function keyWithBudget(world: World, budget: string, more: Body = {}) {
  const made = await operate(world, "/keys", {
    body: { scopes: ["chat", "money"], budget, ...more },
  });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  world.seenSecrets.add(made.body.apiKey);
  return { key: made.body.apiKey as string, id: made.body.key.id as string };
}

async function budgetOf(world: World, id: string) {
  const { value } = await world.deps.kv.get(budgetKey(world.projectId, id));
  const { spent, held } = decodeBudget(value ?? assert.fail("the budget has no row"));
  return { spent: formatAmount(spent), held: formatAmount(held) };
}

const users = (count: number) => Array.from({ length: count }, (_, n) => `user-${n}`);

/** Calls at once, whose responses come once all of them have been held or refused. */
async function callAtOnce(
  world: World,
  names: readonly string[],
  { key, more = {}, worlds = [world] }: { key: string; more?: Body; worlds?: readonly World[] },
): Promise<{ status: number; body: Body }[]> {
  const gate = createGate();
  for (const { upstream } of worlds) {
    upstream.reply(async () => {
      await gate.opened;
      return completion({ usage: usage(10, 5) });
    });
  }
  let refused = 0;
  const calls = names.map(async (user, n) => {
    const asked = worlds[n % worlds.length] ?? world;
    const answer = await asked.json(chatPath, { key, body: chatBody(user, more) });
    refused++;
    return answer;
  });
  const held = () => worlds.reduce((sum, { upstream }) => sum + upstream.calls.length, 0);
  await world.until(() => held() + refused >= names.length, 100);
  gate.open();
  return await until(world, Promise.all(calls), 100);
}

const statuses = (answers: readonly { status: number }[]) => {
  const counts: Record<number, number> = {};
  for (const { status } of answers) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
};

for (
  const [title, names] of [["of 100 users", users(100)], [
    "of one user",
    Array(40).fill("ada"),
  ]] as const
) {
  Deno.test(`budgets: of calls ${title} at once, as many start as the budget pays for`, async () => {
    using world = await createWorld({
      project: { pricing: feeOnly, limits: { user: { concurrent: 64 } } },
    });
    for (const user of new Set(names)) await world.deposit(user, "1");
    const { key, id } = await keyWithBudget(world, "0.03");
    const answers = await callAtOnce(world, names, { key });
    assert.deepEqual(statuses(answers), { 200: 3, 403: names.length - 3 });
    assert.equal(
      answers.find(({ status }) => status === 403)?.body.error.code,
      "key_budget_reached",
    );
    assert.deepEqual(await budgetOf(world, id), { spent: "0.03", held: "0" });
    assert.equal(world.upstream.calls.length, 3);
    for (const user of new Set(names)) await checkBooks(world, user);
  });
}

Deno.test("budgets: two processes share one", async () => {
  using world = await createWorld({ project: { pricing: feeOnly }, isShared: true });
  using other = await createWorld({ shareWith: world, isShared: true });
  for (const user of users(40)) await world.deposit(user, "1");
  const { key, id } = await keyWithBudget(world, "0.05");
  const answers = await callAtOnce(world, users(40), { key, worlds: [world, other] });
  assert.deepEqual(statuses(answers), { 200: 5, 403: 35 });
  assert.deepEqual(await budgetOf(world, id), { spent: "0.05", held: "0" });
});

Deno.test("budgets: a process ends what another one has held since it read the budget", async () => {
  using world = await createWorld({ project: { pricing: feeOnly }, isShared: true });
  const store = createScriptedStore();
  using other = await createWorld({ shareWith: world, isShared: true, wrapKv: store.wrap });
  for (const user of users(2)) await world.deposit(user, "1");
  const { key, id } = await keyWithBudget(world, "0.05");
  world.upstream.reply(() => Promise.resolve(completion({ usage: usage(10, 5) })));
  await world.json(chatPath, { key, body: chatBody("user-0") });
  other.upstream.reply(() => new Promise(() => {}));
  other.call(chatPath, { key, body: chatBody("user-1"), keepClock: true }).catch(() => {});
  await world.until(() => other.upstream.calls.length === 1);
  assert.deepEqual(await budgetOf(world, id), { spent: "0.01", held: "0.01" });
  store.dead = true;
  await world.clock.advance(120_000);
  assert.equal((await world.json(chatPath, { body: chatBody("user-1") })).status, 200);
  assert.deepEqual(await budgetOf(world, id), { spent: "0.01", held: "0" });
  await checkBooks(world, "user-1");
});

Deno.test("budgets: the output is clamped to what is left, without a hint to top up", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { key, id } = await keyWithBudget(world, "0.0001");
  world.upstream.once(() =>
    completion({
      choices: [{
        index: 0,
        message: { role: "assistant", content: "Hi" },
        finish_reason: "length",
      }],
      usage: usage(8, 40),
    })
  );
  const { status, body } = await world.json(chatPath, { key, body: chatBody("ada") });
  assert.equal(status, 200);
  const sent = world.upstream.calls[0]?.body.max_tokens;
  assert.ok(sent >= 16 && sent <= 46, `sent ${sent}`);
  assert.equal(body.choices[0].message.content, "Hi");
  assert.deepEqual(await budgetOf(world, id), { spent: "0.000088", held: "0" });
});

Deno.test("budgets: a stream holds its part while it runs, and returns what it does not use", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { key, id } = await keyWithBudget(world, "0.0005");
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = await world.call(chatPath, { key, body: chatBody("ada", { stream: true }) });
  const events = readEvents(response);
  const { spent, held } = await budgetOf(world, id);
  assert.equal(spent, "0");
  assert.ok(Number(held) > 0.0002, held);
  stream.send(chunk({ role: "assistant", content: "Hi" }));
  stream.send(chunk({}, "stop"));
  stream.send(usageChunk(usage(8, 10)));
  stream.send("[DONE]");
  stream.end();
  await events;
  assert.deepEqual(await budgetOf(world, id), { spent: "0.000028", held: "0" });
});

Deno.test("budgets: what fails, and what expires, is returned", async () => {
  using world = await createWorld({ project: { pricing: feeOnly } });
  await world.deposit("ada", "1");
  const { key, id } = await keyWithBudget(world, "0.01");
  world.upstream.once(() => Response.json({ error: { message: "no" } }, { status: 500 }));
  assert.equal((await world.json(chatPath, { key, body: chatBody("ada") })).status, 502);
  assert.deepEqual(await budgetOf(world, id), { spent: "0", held: "0" });
  assert.equal((await world.json(chatPath, { key, body: chatBody("ada") })).status, 200);
  assert.deepEqual(await budgetOf(world, id), { spent: "0.01", held: "0" });
});

Deno.test("budgets: a charge and its repetition count once, also at once", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const { key, id } = await keyWithBudget(world, "0.05");
  const charge = (idempotencyKey: string, amount = "0.02") =>
    world.json("/v1/user/charge", {
      key,
      body: { user: "ada", amount },
      headers: { "idempotency-key": idempotencyKey },
    });
  const answers = await Promise.all(["a", "a", "b", "b", "c", "d"].map((name) => charge(name)));
  assert.deepEqual(statuses(answers), { 200: 4, 403: 2 });
  assert.deepEqual(await budgetOf(world, id), { spent: "0.04", held: "0" });
  assert.equal((await charge("a")).status, 200, "it is answered again");
  assert.equal((await charge("e", "0.01")).status, 200, "what is left can be spent");
  const kinds = (await storedEntries(world, "ada")).map(({ kind, budgets }) => [kind, budgets]);
  assert.deepEqual(kinds, [["deposit", undefined], ...Array(3).fill(["charge", [id]])]);
});

Deno.test("budgets: a chat repeated under its key counts once", async () => {
  using world = await createWorld({ project: { pricing: feeOnly } });
  await world.deposit("ada", "1");
  const { key, id } = await keyWithBudget(world, "0.02");
  const ask = () =>
    world.json(chatPath, {
      key,
      body: chatBody("ada"),
      headers: { "idempotency-key": "same" },
    });
  const answers = await until(world, Promise.all([ask(), ask(), ask()]), 100);
  assert.deepEqual(statuses(answers), { 200: 3 });
  assert.deepEqual(await budgetOf(world, id), { spent: "0.01", held: "0" });
});

Deno.test("budgets: verify finds one that holds what no call holds", async () => {
  using world = await createWorld({ project: { pricing: feeOnly } });
  await world.deposit("ada", "1");
  const { key, id } = await keyWithBudget(world, "0.05");
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = await world.call(chatPath, { key, body: chatBody("ada", { stream: true }) });
  const running = await verify(world);
  assert.deepEqual(running.faults, []);
  assert.equal(running.checked.budgets, 1);
  const row = { spent: "0", held: "20000000" };
  await put(world, budgetKey(world.projectId, id), toBytes(row));
  assert.deepEqual((await verify(world)).faults, [
    `budget ${id} of ${world.projectId} holds 0.02, but running calls hold 0.01`,
  ]);
  await response.body?.cancel();
});

Deno.test("budgets: verify reads the running calls once for all budgets", async () => {
  using world = await createWorld({ project: { pricing: feeOnly } });
  await world.deposit("ada", "1");
  const keys = [await keyWithBudget(world, "1"), await keyWithBudget(world, "1")];
  for (const { key } of keys) await world.json(chatPath, { key, body: chatBody("ada") });
  const { key } = await keyWithBudget(world, "1");
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = await world.call(chatPath, { key, body: chatBody("ada", { stream: true }) });
  const { checked, faults } = await verify(world);
  assert.deepEqual([faults, checked.budgets, checked.budgetHolders], [[], 3, 1]);
  await response.body?.cancel();
});

Deno.test("budgets: verify counts an account with rows on two pages of the hold index once", async () => {
  using world = await createWorld({ project: { pricing: feeOnly } });
  await world.deposit("ada", "1");
  const { key } = await keyWithBudget(world, "0.05");
  const stream = fedStream();
  world.upstream.once(() => stream.response);
  const response = await world.call(chatPath, { key, body: chatBody("ada", { stream: true }) });
  const [row] = await world.deps.kv.list({ prefix: holdingPrefix, limit: 1 });
  assert.ok(row?.value);
  for (let at = 0; at < 120; at++) await put(world, [...row.key, `connection${at}`], row.value);
  assert.deepEqual((await verify(world)).faults.filter((fault) => fault.startsWith("budget")), []);
  await response.body?.cancel();
});

Deno.test("budgets: what a key had spent before version 1.0 counts", async () => {
  using world = await createWorld({ project: { pricing: feeOnly } });
  await world.deposit("ada", "1");
  const { key, id } = await keyWithBudget(world, "0.03");
  const row = (shard: string, units: string) =>
    put(
      world,
      [...keySpendKey(world.projectId, id), shard],
      encodeUtf8(`{"spent":["${units}"]}`),
    );
  await row("one", "5000000");
  await row("two", "6000000");
  assert.equal((await world.json(chatPath, { key, body: chatBody("ada") })).status, 200);
  assert.deepEqual(await budgetOf(world, id), { spent: "0.021", held: "0" });
  const { status, body } = await world.json(chatPath, { key, body: chatBody("ada") });
  assert.equal(status, 403);
  assert.equal(body.error.message, "This API key has spent 0.021 of its budget of 0.03.");
});
