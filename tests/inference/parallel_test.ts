import assert from "node:assert/strict";
import { loadTokenizer } from "../../src/pricing/tokenizer.ts";
import { readSummary } from "../../src/summaries/summary.ts";
import { chatBody, chatPath, checkBooks } from "../support/books.ts";
import { until } from "../support/chat.ts";
import { createGate } from "../support/store.ts";
import { completion, usage } from "../support/upstream.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

// Loaded once: a hand-moved clock would run ahead of the import.
await loadTokenizer();

const dear = {
  models: { "test-model": { input: "0", output: "75", maxOutputTokens: 32_000, reasoning: false } },
};

/** Calls of one user at once, each of 100 tokens of output, which end when all have started. */
async function ask(world: World, count: number, more: Body = {}) {
  const gate = createGate();
  let started = 0;
  world.upstream.reply(async () => {
    if (++started === count) gate.open();
    await gate.opened;
    return completion({ usage: usage(0, 100) });
  });
  const body = chatBody("ada", { max_tokens: 32_000, ...more });
  const calls = Array.from({ length: count }, () => world.json(chatPath, { body }));
  return await until(world, Promise.all(calls), 100);
}

for (const [balance, count] of [["5", 5], ["2", 5], ["1", 6], ["10", 4]] as const) {
  Deno.test(`parallel calls: ${count} start at a balance of ${balance}, and each is charged exactly`, async () => {
    using world = await createWorld({ project: { pricing: dear } });
    await world.deposit("ada", balance);
    const answers = await ask(world, count);
    assert.deepEqual(answers.map(({ status, body }) => [status, body.usage.cost_exact]), [
      ...Array(count).fill([200, "0.0075"]),
    ]);
    await checkBooks(world, "ada");
    const left = Number(balance) - count * 0.0075;
    assert.equal(Number((await world.balance("ada")).balance), left);
  });
}

Deno.test("parallel calls: one that is not clamped holds all that it may cost", async () => {
  using world = await createWorld({ project: { pricing: dear } });
  // Exactly 32,000 tokens.
  await world.deposit("ada", "2.4");
  await ask(world, 1);
  assert.equal(world.upstream.calls[0]?.body.max_tokens, 32_000);
});

Deno.test("parallel calls: what pays for a short response only is not shared", async () => {
  using world = await createWorld({ project: { pricing: dear } });
  await world.deposit("ada", "0.015");
  await ask(world, 1);
  assert.equal(world.upstream.calls[0]?.body.max_tokens, 200);
});

Deno.test("parallel calls: where running ones hold everything, the reason is its own, with a time to retry", async () => {
  const limits = { heldWaitMs: 0 };
  using world = await createWorld({ project: { pricing: dear, limits } });
  await world.deposit("ada", "0.01");
  const gate = createGate();
  world.upstream.once(async () => {
    await gate.opened;
    return completion({ usage: usage(0, 100) });
  });
  const body = chatBody("ada", { max_tokens: 32_000 });
  const first = world.json(chatPath, { body });
  while (world.upstream.calls.length === 0) await new Promise((done) => setTimeout(done, 5));
  const { status, body: second, response } = await world.json(chatPath, { body });
  assert.equal(status, 200);
  assert.deepEqual([second.paywall.reason, second.paywall.retryAfter], ["balance_held", 2]);
  assert.equal(response.headers.get("x-service-paywall"), "balance_held");
  assert.equal(response.headers.get("retry-after"), "2");
  const charged = await world.json("/v1/user/charge", { body: { user: "ada", amount: "0.01" } });
  assert.deepEqual([charged.body.reason, charged.body.retryAfter], ["balance_held", 2]);
  gate.open();
  assert.equal((await first).body.usage.cost_exact, "0.0075");
  await world.app.flush();
  const hours = { from: 0, to: world.clock.now() + 1 };
  const { refusals, refusedCharges } = await readSummary(world.deps.kv, world.projectId, hours);
  assert.deepEqual([refusals, refusedCharges], [
    [{ reason: "busy", count: 1 }],
    [{ reason: "busy", count: 1 }],
  ]);
});
