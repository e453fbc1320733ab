import assert from "node:assert/strict";
import { chat, chatStream, openReader, usageOf } from "../support/chat.ts";
import { type Body, createWorld, type World } from "../support/world.ts";
import { chunk, completion, fedStream, usage, usageChunk } from "../support/upstream.ts";

const price = { input: "1", output: "2", maxOutputTokens: 20_000 };
const hidden = { completion_tokens_details: { reasoning_tokens: 700 } };
const none = { completion_tokens_details: { reasoning_tokens: 0 } };

async function worldWith(models: string[], balance = "1"): Promise<World> {
  const priced = Object.fromEntries(models.map((model) => [model, price]));
  const world = await createWorld({ project: { pricing: { models: priced } } });
  await world.deposit("ada", balance);
  return world;
}

/** Leaves a stream at its last visible word; returns the output tokens that were charged. */
async function outputAfterLeaving(world: World, fields: Record<string, unknown>): Promise<number> {
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  const reader = openReader(await chatStream(world, { max_tokens: 2_000, ...fields }));
  fed.send(chunk({ content: "Hi" }));
  await reader.read();
  const left = reader.leave();
  const before = (await usageOf(world)).length;
  for (const event of [chunk({}, "stop"), usageChunk(usage(10, 800, hidden)), "[DONE]"]) {
    try {
      fed.send(event as Record<string, unknown>);
    } catch {
      break;
    }
  }
  try {
    fed.end();
  } catch {
    // The upstream was let go.
  }
  await left;
  await world.app.running.idle();
  const entries = await usageOf(world);
  assert.ok(entries.length >= before);
  return entries[0]?.usage.outputTokens;
}

const thinking = [
  ...["gemini-2.5-pro", "gemini-3-flash", "grok-4", "claude-opus-4-8", "gpt-6-astra"],
  ...["deepseek-v4-chat", "qwen3-32b", "gpt-oss-120b", "ft:o4-mini:acme", "my-deployment"],
];
for (const model of thinking) {
  Deno.test(`reasoning: a caller who leaves ${model} at the last word pays what the provider bills`, async () => {
    using world = await worldWith([model]);
    assert.equal(await outputAfterLeaving(world, { model }), 800);
  });
}

Deno.test("reasoning: a model that has reported none is let go, until it reports some; stored", async () => {
  using world = await worldWith(["mine"]);
  world.upstream.once(() => completion({ usage: usage(10, 5, none) }));
  await chat(world, { model: "mine" });
  assert.equal(await outputAfterLeaving(world, { model: "mine" }), 1);
  world.upstream.once(() => completion({ usage: usage(10, 900, hidden) }));
  await chat(world, { model: "mine" });
  world.upstream.once(() => completion({ usage: usage(10, 5, none) }));
  await chat(world, { model: "mine" });
  assert.equal(await outputAfterLeaving(world, { model: "mine" }), 800);
  using other = await createWorld({ shareWith: world, seed: 2 });
  const [entry] = await usageOf(other);
  assert.equal(entry?.usage.outputTokens, 800);
});

Deno.test("reasoning: a model from before hidden reasoning is let go from the start", async () => {
  using world = await worldWith(["gpt-4o-mini"]);
  assert.equal(await outputAfterLeaving(world, { model: "gpt-4o-mini" }), 1);
});

const wishes = [
  { include_reasoning: true },
  { enable_thinking: true },
  { chat_template_kwargs: { enable_thinking: true } },
  { thinking_budget: 100 },
  { thinking: { type: "enabled", budget_tokens: 1_024 } },
];
for (const wish of wishes) {
  Deno.test(`reasoning: ${JSON.stringify(wish)} is a wish to think`, async () => {
    using world = await worldWith(["gpt-4o-mini"]);
    assert.equal(await outputAfterLeaving(world, { model: "gpt-4o-mini", ...wish }), 800);
  });
}

const sentCap = (world: World): number => (world.upstream.calls[0]?.body as Body).max_tokens;
const budget = { thinking: { type: "enabled", budget_tokens: 8_000 } };

Deno.test("reasoning: a thinking budget that the balance does not pay for is the paywall", async () => {
  using world = await worldWith(["claude-opus-4-8"], "0.0067");
  const { body } = await chat(world, { model: "claude-opus-4-8", ...budget });
  assert.equal(body.paywall?.reason, "insufficient_funds");
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("reasoning: our own bound makes room for the thinking that is asked for", async () => {
  using world = await createWorld({
    project: { maxOutputTokens: 4_000, pricing: { models: { m: { input: "1", output: "2" } } } },
  });
  await world.deposit("ada", "1");
  assert.equal((await chat(world, { model: "m", ...budget })).status, 200);
  assert.equal(sentCap(world), 9_024);
});

Deno.test("reasoning: the caller's own bound beside a budget is passed on as it is", async () => {
  using world = await worldWith(["m"]);
  await chat(world, { model: "m", ...budget, max_tokens: 8_500 });
  assert.equal(sentCap(world), 8_500);
});
