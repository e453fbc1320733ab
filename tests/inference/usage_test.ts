import assert from "node:assert/strict";
import { formatAmount, toAmount, zero } from "../../src/base/money.ts";
import { costOfUse, type Price, useOfTokens, wholePercent } from "../../src/pricing/price.ts";
import { compilePrices } from "../../src/pricing/price_level.ts";
import { readUsage } from "../../src/pricing/usage.ts";
import { chat, chatBody, chatStream, usageOf } from "../support/chat.ts";
import { createWorld } from "../support/world.ts";
import { chunk, completion, sse, usage, usageChunk } from "../support/upstream.ts";

/** For a response "Hello there" to "Hi": 8 tokens in, 2 out. */
const estimatedCost = "0.000012";

const cachedPricing = {
  pricing: {
    models: {
      "test-model": {
        input: "1",
        cachedInput: "0.1",
        cacheWrite: "1.25",
        output: "2",
        maxOutputTokens: 1000,
      },
    },
  },
};

const reports: { name: string; used: Record<string, unknown>; cost: string }[] = [
  {
    name: "400 plain, 600 cached, 100 out", // case 26
    used: usage(1000, 100, { prompt_tokens_details: { cached_tokens: 600 } }),
    cost: "0.00066",
  },
  {
    name: "the cache's writes have their own price",
    used: usage(1000, 100, {
      prompt_tokens_details: { cached_tokens: 600, cache_write_tokens: 300 },
    }),
    cost: "0.000735",
  },
  {
    name: "reasoning is inside the output, and not added to it", // case 27
    used: usage(10, 100, { completion_tokens_details: { reasoning_tokens: 90 } }),
    cost: "0.00021",
  },
  {
    name: "rejected predictions are inside the output", // case 27
    used: usage(10, 100, { completion_tokens_details: { rejected_prediction_tokens: 60 } }),
    cost: "0.00021",
  },
  {
    name: "more cached than prompt was counted beside the prompt", // case 28
    used: usage(100, 5, { prompt_tokens_details: { cached_tokens: 900 } }),
    cost: "0.0002",
  },
  {
    name: "cached and written overlap: no token is paid twice", // case 28
    used: usage(100, 5, { prompt_tokens_details: { cached_tokens: 80, cache_write_tokens: 80 } }),
    cost: "0.000043",
  },
  {
    name: "negative details count as none", // case 28
    used: usage(100, 5, { prompt_tokens_details: { cached_tokens: -50 } }),
    cost: "0.00011",
  },
  {
    name: "more reasoning than output is cut to it", // case 28
    used: usage(100, 5, { completion_tokens_details: { reasoning_tokens: 500 } }),
    cost: "0.00011",
  },
  {
    name: "what was read from a cache beside the prompt is not free",
    used: usage(100, 5, { cache_read_input_tokens: 1_000, total_tokens: 1_105 }),
    cost: "0.00021",
  },
  {
    name: "nor what was written to one",
    used: usage(100, 5, { cache_creation_input_tokens: 1_000, total_tokens: 1_105 }),
    cost: "0.00136",
  },
  {
    name: "of a cache within the prompt no token is paid twice",
    used: usage(1_000, 5, { cache_read_input_tokens: 900 }),
    cost: "0.0002",
  },
];

for (const { name, used, cost } of reports) {
  Deno.test(`chat usage: ${name}`, async () => {
    using world = await createWorld({ project: cachedPricing });
    await world.deposit("ada", "1");
    world.upstream.once(() => completion({ usage: used }));
    const { status, body } = await chat(world);
    assert.equal(status, 200);
    assert.deepEqual(body.usage, { ...used, cost: Number(cost), cost_exact: cost });
    const [entry] = await usageOf(world);
    assert.equal(entry?.amount, cost);
    assert.equal(entry?.usage.source, "provider");
    const { balance, held } = await world.balance("ada");
    assert.equal(
      balance,
      formatAmount(toAmount(10n ** 9n - BigInt(Math.round(Number(cost) * 1e9)))),
    );
    assert.equal(held, "0");
  });
}

const outside: [string, Record<string, unknown>, [output: number, reasoning: number]][] = [
  ["xAI's", { completion_tokens_details: { reasoning_tokens: 386 }, total_tokens: 427 }, [
    395,
    386,
  ]],
  ["Gemini's", { total_tokens: 623 }, [591, 582]],
  ["none: what a cache holds is beside it", {
    total_tokens: 141,
    cache_creation_input_tokens: 60,
    cache_read_input_tokens: 40,
  }, [9, 0]],
];

for (const [name, more, expected] of outside) {
  Deno.test(`chat usage: reasoning that is counted beside the output is charged: ${name}`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.once(() => completion({ usage: { ...usage(32, 9), ...more } }));
    await chat(world);
    const { outputTokens, reasoningTokens } = (await usageOf(world))[0]?.usage ?? {};
    assert.deepEqual([outputTokens, reasoningTokens], expected);
  });
}

const absurd: [string, unknown][] = [
  ["none at all", undefined], // case 29
  ["null", null], // case 29
  ["a negative prompt", usage(-10, 5)], // case 28
  ["a negative output", usage(10, -5)], // case 28
  ["text", usage(10, 5, { completion_tokens: "5" })], // case 28
  ["a list", [10, 5]], // case 28
  ["zero everywhere", usage(0, 0)], // case 30
];

for (const [name, used] of absurd) {
  Deno.test(`chat usage: our own count is charged, and marked, for ${name}`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    world.upstream.once(() => completion({ usage: used }));
    const { body } = await chat(world);
    const counted = { prompt_tokens: 8, completion_tokens: 2, total_tokens: 10 };
    const charged = { cost: Number(estimatedCost), cost_exact: estimatedCost };
    assert.deepEqual(body.usage, { ...counted, ...charged });
    const [entry, ...more] = await usageOf(world);
    assert.equal(more.length, 0);
    assert.equal(entry?.amount, estimatedCost);
    assert.equal(entry?.usage.source, "estimated");
    assert.deepEqual(
      [entry?.usage.uncachedInputTokens, entry?.usage.outputTokens],
      [8, 2],
    );
  });
}

Deno.test("chat usage: tool calls are counted where usage is absent", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const tool_calls = [{
    id: "c",
    type: "function",
    function: { name: "weather", arguments: '{"city":"Oslo"}' },
  }];
  const choices = [{ index: 0, message: { content: null, tool_calls } }];
  world.upstream.once(() => completion({ choices, usage: undefined }));
  const { body } = await chat(world);
  assert.ok(body.usage.completion_tokens >= 5, JSON.stringify(body.usage)); // case 32
  assert.equal((await usageOf(world))[0]?.amount, body.usage.cost_exact);
});

Deno.test("chat usage: two choices hold twice, and usage of one does not hide the other", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const content = "one two three four five six seven eight";
  const choices = [0, 1].map((index) => ({ index, message: { role: "assistant", content } }));
  const details = { prompt_tokens_details: { cached_tokens: 4 } };
  let held = "";
  world.upstream.once(async () => {
    held = (await world.balance("ada")).held;
    return completion({ choices, usage: usage(10, 8, details) });
  });
  const { body } = await chat(world, { n: 2, max_tokens: 100 });
  assert.equal(body.usage.completion_tokens, 16, "as many as are charged");
  assert.deepEqual(body.usage.prompt_tokens_details, details.prompt_tokens_details);
  const bytes = JSON.stringify(chatBody({ n: 2, max_tokens: 100 })).length;
  assert.equal(held, ((bytes + 2 * 100 * 2) / 1e6).toFixed(6)); // case 31
  assert.equal(world.upstream.calls[0]?.body.max_tokens, 100);
  assert.equal((await usageOf(world))[0]?.amount, "0.000042"); // 10 + 2 * 8 * 2
  assert.equal((await usageOf(world))[0]?.usage.source, "estimated");
});

Deno.test("chat usage: the total of several choices is charged once where it is reported", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const choices = [0, 1].map((index) => ({ index, message: { content: "Hello there" } }));
  world.upstream.once(() => completion({ choices, usage: usage(10, 40) }));
  await chat(world, { n: 2 });
  assert.equal((await usageOf(world))[0]?.amount, "0.00009"); // case 31
  // As by a tokenizer that knows the language better than ours, which counts 16.
  const content = "one two three four five six seven eight";
  const long = [0, 1].map((index) => ({ index, message: { content } }));
  world.upstream.once(() => completion({ choices: long, usage: usage(10, 13) }));
  const { body } = await chat(world, { n: 2 });
  assert.deepEqual([body.usage.completion_tokens, body.usage.cost_exact], [13, "0.000036"]);
});

Deno.test("chat usage: what many choices report together is accepted", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  world.upstream.once(() => completion({ usage: usage(10, 60_000) }));
  const { body } = await chat(world, { n: 100, max_tokens: 1000 });
  assert.equal(body.usage.cost_exact, "0.12001");
});

Deno.test("chat usage: the request fee is due where there is output, and only there", async () => {
  const models = { "test-model": { input: "1", output: "2", maxOutputTokens: 1000 } };
  using world = await createWorld({ project: { pricing: { requestFee: "0.01", models } } });
  await world.deposit("ada", "1");
  const { body } = await chat(world);
  assert.equal(body.usage.cost_exact, "0.01002");
  const silent = [{ index: 0, message: { role: "assistant", content: "" } }];
  world.upstream.once(() => completion({ choices: silent, usage: usage(10, 0) }));
  assert.equal((await chat(world)).body.usage.cost_exact, "0.00001");
});

Deno.test("chat usage: more than the hold is taken from the balance, the rest is a shortfall", async () => {
  using world = await createWorld();
  await world.deposit("ada", "0.01");
  world.upstream.once(() => completion({ usage: usage(10, 30_000) }));
  const { status, body } = await chat(world);
  assert.equal(status, 200);
  assert.equal(body.usage.cost_exact, "0.01", "what was charged, not what was due");
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.amount, entry?.shortfall], ["0.01", "0.05001"]); // case 61
  assert.equal((await world.balance("ada")).balance, "0");
});

const nanoPrice: Price = {
  table: compilePrices({ input: "0.015", cachedInput: "0", cacheWrite: "0", output: "0" }).always,
  requestFee: zero,
  minimum: zero,
  percent: wholePercent,
  statedPercent: null,
};

Deno.test("chat usage: a million responses of one cheap token sum up without drift", () => {
  const one = readUsage(usage(1, 0));
  assert.ok(one);
  let sum = 0n;
  const used = { ...useOfTokens(one.counts), producedOutput: true };
  for (let i = 0; i < 1_000_000; i++) sum += costOfUse(nanoPrice, used);
  assert.equal(formatAmount(sum), "0.015"); // case 66
});

Deno.test("chat usage: what costs less than the smallest unit costs one unit", async () => {
  const models = { "test-model": { input: "0.0000001", output: "0", maxOutputTokens: 10 } };
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "0.001");
  for (let i = 0; i < 20; i++) {
    world.upstream.once(() => completion({ usage: usage(1, 0) }));
    assert.equal((await chat(world)).body.usage.cost_exact, "0.000000001");
  }
  assert.equal((await world.balance("ada")).balance, "0.00099998"); // case 66
});

for (const told of [0, 1]) {
  Deno.test(`chat usage: text after a report of ${told} tokens is charged by our own count`, async () => {
    using world = await createWorld();
    await world.deposit("ada", "1");
    const text = Array.from({ length: 50 }, () => chunk({ content: " hello world" }));
    world.upstream.once(() => sse([usageChunk(usage(10, told)), ...text, chunk({}, "stop")]));
    await (await chatStream(world)).text();
    const [used] = await usageOf(world);
    assert.deepEqual([used?.usage.outputTokens, used?.usage.source], [100, "estimated"]);
  });
}

Deno.test("chat usage: an empty text after the usage report does not replace it", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  const text = Array.from({ length: 50 }, () => chunk({ content: " hello world" }));
  const end = chunk({ content: "" }, "stop");
  world.upstream.once(() => sse([...text, usageChunk(usage(10, 60)), end]));
  await (await chatStream(world)).text();
  const [used] = await usageOf(world);
  assert.deepEqual([used?.usage.outputTokens, used?.usage.source], [60, "provider"]);
});

const reasoningPrice = { input: "0.5", output: "3", maxOutputTokens: 4096 };
const listPrice = { input: "1", cachedInput: "0.1", cacheWrite: "1.25", output: "5" };

function priced(price: Record<string, unknown>) {
  return { pricing: { models: { "test-model": { maxOutputTokens: 4096, ...price } } } };
}

function words(count: number) {
  return { messages: [{ role: "user", content: "word ".repeat(count) }] };
}

Deno.test("chat usage: prompts of tools at the provider, which only the total reveals, are input", async () => {
  using world = await createWorld({ project: priced(reasoningPrice) });
  await world.deposit("ada", "1");
  const used = usage(151, 1089, {
    total_tokens: 20_689,
    completion_tokens_details: { reasoning_tokens: 1120 },
  });
  world.upstream.once(() => completion({ usage: used }));
  await chat(world);
  const [entry] = await usageOf(world);
  assert.equal(entry?.amount, "0.015867");
  assert.deepEqual([entry?.usage.uncachedInputTokens, entry?.usage.outputTokens], [18_480, 2_209]);
});

Deno.test("chat usage: more cached than prompt is beside it, also where the total leaves it out", async () => {
  const price = { input: "3", cachedInput: "0.3", cacheWrite: "3.75", output: "15" };
  using world = await createWorld({ project: priced(price) });
  await world.deposit("ada", "1");
  const used = usage(8, 12, {
    prompt_tokens_details: { cached_tokens: 18_901 },
    cache_creation_input_tokens: 1367,
    cache_read_input_tokens: 18_901,
  });
  world.upstream.once(() => sse([chunk({ content: "Hi" }), chunk({}, "stop"), usageChunk(used)]));
  await (await chatStream(world, words(19_000))).text();
  assert.equal((await usageOf(world))[0]?.amount, "0.01100055");
});

Deno.test("chat usage: a report of zeros after the usage changes nothing", async () => {
  using world = await createWorld({ project: priced(listPrice) });
  await world.deposit("ada", "1");
  const end = { ...chunk({}, "stop"), usage: usage(2000, 300) };
  world.upstream.once(() => sse([chunk({ content: "Hi" }), end, usageChunk(usage(0, 0))]));
  await (await chatStream(world, words(2000))).text();
  assert.equal((await usageOf(world))[0]?.amount, "0.0035");
});

for (const place of ["choices", "x_groq", "usageMetadata"]) {
  Deno.test(`chat usage: usage in ${place} is read, and the caller sees ours alone`, async () => {
    using world = await createWorld({ project: priced(listPrice) });
    await world.deposit("ada", "1");
    const used = usage(1019, 512, { prompt_tokens_details: { cached_tokens: 1000 } });
    const end = chunk({}, "stop") as { choices: Record<string, unknown>[] };
    if (place === "choices") end.choices[0] = { ...end.choices[0], usage: used };
    else Object.assign(end, { [place]: place === "x_groq" ? { id: "req_1", usage: used } : used });
    world.upstream.once(() => sse([chunk({ content: "Hi" }), end]));
    const options = { ...words(2000), stream_options: { include_usage: true } };
    const text = await (await chatStream(world, options)).text();
    assert.equal((await usageOf(world))[0]?.amount, "0.002679");
    assert.equal(text.split('completion_tokens":512').length, 2, text);
  });
}

Deno.test("chat usage: zero prompt tokens are never true", async () => {
  using world = await createWorld({ project: priced(listPrice) });
  await world.deposit("ada", "1");
  world.upstream.once(() => completion({ usage: usage(0, 10) }));
  await chat(world, words(2000));
  const [entry] = await usageOf(world);
  assert.ok(entry && entry.usage.uncachedInputTokens >= 2000, JSON.stringify(entry?.usage));
  assert.deepEqual([entry.usage.outputTokens, entry.usage.source], [10, "estimated"]);
});
