import assert from "node:assert/strict";
import { chat, chatStream, usageOf } from "../support/chat.ts";
import { adminKey, type Body, createWorld, type World } from "../support/world.ts";
import { chunk, completion, sse, usage, usageChunk } from "../support/upstream.ts";

type Fields = Record<string, unknown>;

async function worldWith(pricing: Fields, balance = "10"): Promise<World> {
  const world = await createWorld({ project: { pricing } });
  await world.deposit("ada", balance);
  return world;
}

/** What a response with this usage costs by a price. */
async function costOf(
  price: Fields,
  { body = {}, request = {} }: { body?: Fields; request?: Fields },
): Promise<{ cost: string | null; entry: Body }> {
  using world = await worldWith({ models: { "test-model": { ...price, maxOutputTokens: 1000 } } });
  world.upstream.once(() => completion(body));
  const messages = [{ role: "user", content: "word ".repeat(1000) }];
  const { response, status } = await chat(world, { messages, ...request });
  assert.equal(status, 200);
  const [entry] = await usageOf(world);
  const verified = await world.json("/v1/admin/verify", { key: adminKey });
  assert.deepEqual(verified.body.faults, []);
  return { cost: response.headers.get("x-service-cost"), entry: entry ?? assert.fail() };
}

const opus = {
  input: "5",
  cachedInput: "0.5",
  cacheWrite: "6.25",
  cacheWriteHour: "10",
  output: "25",
  toolCalls: { web_search: "0.01" },
};
const flash = {
  input: "0.3",
  cachedInput: "0.03",
  audioInput: "1",
  cachedAudioInput: "0.1",
  output: "2.5",
  imageOutput: "30",
};
const deepResearch = {
  input: "2",
  output: "8",
  citation: "2",
  reasoningOutput: "3",
  toolCalls: { web_search: "0.005" },
};

const charges: [string, Fields, Fields, string][] = [
  [
    "cache writes of both lives",
    opus,
    {
      usage: {
        input_tokens: 100,
        cache_read_input_tokens: 2000,
        cache_creation_input_tokens: 1500,
        cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 500 },
        output_tokens: 10,
      },
    },
    // 100 x 5 + 2,000 x 0.5 + 1,000 x 6.25 + 500 x 10 + 10 x 25, per million.
    "0.013",
  ],
  [
    "searches at the provider",
    opus,
    {
      usage: {
        prompt_tokens: 1000,
        completion_tokens: 100,
        server_tool_use: { web_search_requests: 3, web_fetch_requests: 2 },
      },
    },
    "0.0375",
  ],
  [
    "audio in the prompt and images in the response",
    flash,
    {
      usage: {
        prompt_tokens: 1100,
        completion_tokens: 1300,
        prompt_tokens_details: { audio_tokens: 1000 },
        completion_tokens_details: { image_tokens: 1290 },
      },
    },
    // 100 x 0.3 + 1,000 x 1 + 10 x 2.5 + 1,290 x 30.
    "0.039755",
  ],
  [
    "citations, reasoning and searches beside the answer",
    deepResearch,
    {
      usage: {
        prompt_tokens: 33,
        completion_tokens: 500,
        total_tokens: 533,
        citation_tokens: 20_016,
        num_search_queries: 18,
        reasoning_tokens: 7_000,
      },
    },
    // 33 x 2 + 500 x 8 + 20,016 x 2 + 7,000 x 3, per million, and 18 searches.
    "0.155098",
  ],
  [
    "requests by the size of their search context",
    {
      input: "1",
      output: "1",
      requestBySearchContext: { low: "0.005", medium: "0.008", high: "0.012" },
    },
    { usage: { ...usage(10, 10), search_context_size: "medium" } },
    "0.00802",
  ],
  ["a minimum", { input: "1", output: "1", minimum: "0.001" }, { usage: usage(10, 10) }, "0.001"],
  [
    "a markup on every price",
    { input: "1", output: "1", request: "0.01", markupPercent: "20" },
    { usage: usage(100, 100) },
    "0.01224",
  ],
  [
    "a tier that the response says it was served at",
    {
      input: "1",
      output: "10",
      serviceTiers: { flex: { factor: "0.5" }, priority: { factor: "2" } },
    },
    { usage: usage(100, 100), service_tier: "flex" },
    "0.00055",
  ],
  [
    "a tier with prices of its own",
    { input: "1", output: "10", serviceTiers: { priority: { output: "25" } } },
    { usage: usage(100, 100), service_tier: "priority" },
    "0.0026",
  ],
  [
    "a long prompt, as a whole at the higher tier",
    { input: "1", output: "10", tiers: [{ above: 1000, input: "2", output: "15" }] },
    { usage: usage(1001, 100) },
    "0.003502",
  ],
];

for (const [what, price, body, cost] of charges) {
  Deno.test(`prices: ${what} cost what the list says`, async () => {
    assert.equal((await costOf(price, { body })).cost, cost);
  });
}

const priced = (input: string, output: string) => ({ input, output, maxOutputTokens: 1000 });

Deno.test("prices: the model that answered decides the price, and both are recorded", async () => {
  const models = { auto: priced("1", "1"), large: priced("10", "100") };
  using world = await worldWith({ models });
  world.upstream.once(() => completion({ model: "large", usage: usage(100, 10) }));
  await chat(world, { model: "auto" });
  const frames = [chunk({ content: "Hi" }), chunk({}, "stop"), usageChunk(usage(100, 10))];
  const named = frames.map((frame) => ({ ...frame, model: "large" }));
  world.upstream.once(() => sse(named));
  await (await chatStream(world, { model: "auto" })).text();
  for (const { amount, usage } of await usageOf(world)) {
    assert.deepEqual([amount, usage.model, usage.servedModel], ["0.002", "auto", "large"]);
  }
});

Deno.test("prices: an answering model without a price costs what the requested one costs", async () => {
  const pricing = { catalogue: true, models: { mine: priced("1", "1") } };
  using world = await worldWith(pricing);
  world.upstream.once(() => completion({ model: "gpt-4o", usage: usage(100, 10) }));
  await chat(world, { model: "mine" });
  const [entry] = await usageOf(world);
  assert.equal(entry?.amount, "0.00011", "a project's own price is final");
  assert.equal(entry?.usage.upstreamCost, "0.00035", "the list's price of what answered");
  assert.equal(entry?.usage.margin, "-0.00024");
});

Deno.test("prices: with the catalogue, a fallback costs what the answering model costs", async () => {
  using world = await worldWith({ catalogue: true, markupPercent: "10" });
  world.upstream.once(() => completion({ model: "gpt-4o", usage: usage(1000, 100) }));
  await chat(world, { model: "gpt-4o-mini", max_tokens: 200 });
  const [entry] = await usageOf(world);
  assert.deepEqual(
    [entry?.amount, entry?.usage.upstreamCost, entry?.usage.margin],
    ["0.00385", "0.0035", "0.00035"],
  );
});

Deno.test("prices: a stated cost is charged with the markup, up to a bound, and without one the list", async () => {
  const pricing = {
    markupPercent: "25",
    priceFrom: "provider",
    models: { "test-model": priced("1", "1") },
  };
  using world = await worldWith(pricing);
  const stated: [unknown, string][] = [
    [0.000123, "0.00015375"],
    [{ total_cost: 0.0004 }, "0.0005"],
    [0, "0.00011"],
    ["0.5", "0.00011"],
    [50, "0.05"],
    [1e9, "0.05"],
    [undefined, "0.00011"],
  ];
  for (const [cost, charged] of stated) {
    world.upstream.once(() => completion({ usage: { ...usage(100, 10), cost } }));
    const { response } = await chat(world, { max_tokens: 100 });
    assert.equal(response.headers.get("x-service-cost"), charged, JSON.stringify(cost));
  }
  const verified = await world.json("/v1/admin/verify", { key: adminKey });
  assert.deepEqual(verified.body.faults, []);
});

Deno.test("prices: the time of the request decides, in the list's time zone", async () => {
  const price = {
    ...priced("1", "10"),
    timeWindows: [{ from: "16:30", to: "00:30", factor: "0.5" }],
  };
  using world = await worldWith({ models: { "test-model": price } });
  const costs: (string | null)[] = [];
  for (let hour = 0; hour < 24; hour++) {
    const { response } = await chat(world, { max_tokens: 100 });
    costs.push(response.headers.get("x-service-cost"));
    await world.clock.advance(60 * 60_000);
  }
  // The world's time begins at midnight.
  assert.equal(costs[0], "0.00003");
  assert.equal(costs[1], "0.00006");
  assert.equal(costs[16], "0.00006");
  assert.equal(costs[17], "0.00003");
  assert.deepEqual(costs.filter((cost) => cost === "0.00003").length, 8);
});

const affordable: [string, string, Fields, number][] = [
  ["gemini-2.5-pro", "0.0101", { max_tokens: 1000 }, 1000],
  ["gpt-5.5", "0.04", { max_tokens: 1300 }, 1300],
];
for (const [model, balance, request, cap] of affordable) {
  Deno.test(`prices: a short prompt to ${model} is held at the prices that it can reach`, async () => {
    using world = await worldWith({ catalogue: true }, balance);
    const messages = [{ role: "user", content: "Hello" }];
    const { body } = await chat(world, { model, messages, ...request });
    assert.equal(body.paywall, undefined);
    const { max_tokens, max_completion_tokens } = world.upstream.calls[0]?.body as Body;
    assert.equal(max_tokens ?? max_completion_tokens, cap);
  });
}

Deno.test("prices: revenue, upstream cost and margin are summed, also for responses without a list price", async () => {
  using world = await worldWith({ catalogue: true, models: { mine: priced("1", "1") } });
  world.upstream.once(() => completion({ model: "gpt-4o", usage: usage(1000, 100) }));
  await chat(world, { model: "gpt-4o", max_tokens: 200 });
  world.upstream.once(() => completion({ model: "mine", usage: usage(1000, 100) }));
  await chat(world, { model: "mine", max_tokens: 200 });
  const path = `/v1/admin/projects/${world.projectId}/summary?from=2025-06-01&to=2026-06-01`;
  const { body } = await world.json(path, { key: adminKey });
  const { cost, upstreamCost, margin } = body.totals;
  assert.deepEqual([cost, upstreamCost, margin], ["0.0046", "0.0035", "0"]);
});

Deno.test("prices: images in a response cost image tokens, also where its report does not split them", async () => {
  const message = {
    role: "assistant",
    content: "",
    images: [{ type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }],
  };
  const body = {
    choices: [{ index: 0, message, finish_reason: "stop" }],
    usage: usage(1000, 1290),
  };
  assert.equal((await costOf(flash, { body })).cost, "0.039");
  const split = { completion_tokens_details: { image_tokens: 1290 } };
  const reported = { ...body, usage: usage(1000, 1300, split) };
  assert.equal((await costOf(flash, { body: reported })).cost, "0.039025");
});
