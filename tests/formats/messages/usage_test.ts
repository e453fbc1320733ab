import assert from "node:assert/strict";
import { usageOf } from "../../support/chat.ts";
import {
  claudeUsage,
  closed,
  ended,
  message,
  messageStream,
  messagesWorld,
  opened,
  readMessageEvents,
  said,
  send,
  sendStream,
  start,
  stopped,
} from "../../support/messages.ts";
import type { Body } from "../../support/world.ts";

/** Usage, its cost by the price of the tests, and its counts as an entry has them. */
const cases: [string, Body, string, Body][] = [
  ["uncached", claudeUsage(1000, 100), "0.0045", { uncachedInputTokens: 1000, outputTokens: 100 }],
  [
    "read from the cache beside the input",
    claudeUsage(100, 100, { cache_read_input_tokens: 1000 }),
    "0.0021",
    { uncachedInputTokens: 100, cachedInputTokens: 1000 },
  ],
  [
    "read from the cache, less than the input",
    claudeUsage(1000, 100, { cache_read_input_tokens: 100 }),
    "0.00453",
    { uncachedInputTokens: 1000, cachedInputTokens: 100 },
  ],
  [
    "written for five minutes",
    claudeUsage(100, 100, {
      cache_creation_input_tokens: 1000,
      cache_creation: { ephemeral_5m_input_tokens: 1000, ephemeral_1h_input_tokens: 0 },
    }),
    "0.00555",
    { uncachedInputTokens: 100, cacheWriteTokens: 1000 },
  ],
  [
    "written for both lives",
    claudeUsage(100, 100, {
      cache_creation_input_tokens: 1000,
      cache_creation: { ephemeral_5m_input_tokens: 400, ephemeral_1h_input_tokens: 600 },
    }),
    "0.0069",
    { uncachedInputTokens: 100, cacheWriteTokens: 400, cacheWriteHourTokens: 600 },
  ],
  [
    "written, said only by life",
    {
      input_tokens: 100,
      output_tokens: 100,
      cache_creation: { ephemeral_1h_input_tokens: 1000 },
    },
    "0.0078",
    { cacheWriteHourTokens: 1000 },
  ],
  [
    "with a total, which leaves the cache out",
    claudeUsage(100, 100, { cache_read_input_tokens: 50, total_tokens: 200 }),
    "0.001815",
    { uncachedInputTokens: 100, cachedInputTokens: 50 },
  ],
  [
    "thinking, which is within the output",
    claudeUsage(100, 100, { output_tokens_details: { thinking_tokens: 60 } }),
    "0.0018",
    { outputTokens: 100, reasoningTokens: 60 },
  ],
  [
    "a compaction, which the counts leave out",
    claudeUsage(100, 100, {
      iterations: [
        { type: "compaction", ...claudeUsage(1000, 10) },
        { type: "message", ...claudeUsage(100, 100) },
      ],
    }),
    "0.00495",
    { uncachedInputTokens: 1100, outputTokens: 110 },
  ],
];

for (const [what, usage, cost, counts] of cases) {
  Deno.test(`messages usage: ${what} costs the same whole and streamed`, async () => {
    using world = await messagesWorld();
    world.upstream.once(() => message({ usage }));
    const { body } = await send(world, { max_tokens: 4000 });
    assert.equal(body.usage.cost_exact, cost);
    const { output_tokens: output, ...input } = usage;
    world.upstream.once(() =>
      messageStream([
        start({ usage: { ...input, output_tokens: 1 } }),
        opened(0),
        said(0, "Hello there"),
        closed(0),
        ended("end_turn", { output_tokens: output }),
        stopped,
      ])
    );
    const events = await readMessageEvents(await sendStream(world, { max_tokens: 4000 }));
    assert.equal(events.at(-2)?.usage.cost_exact, cost);
    for (const entry of await usageOf(world)) {
      assert.equal(entry.usage.source, "provider");
      for (const [name, tokens] of Object.entries(counts)) assert.equal(entry.usage[name], tokens);
    }
  });
}

Deno.test("messages usage: counts of a stream never shrink, and zeros are no word", async () => {
  using world = await messagesWorld();
  world.upstream.once(() =>
    messageStream([
      start({ usage: claudeUsage(1000, 1, { cache_read_input_tokens: 500 }) }),
      opened(0),
      said(0, "Hello there"),
      closed(0),
      ended(null, { input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 100 }),
      ended("end_turn", { input_tokens: null, output_tokens: 0 }),
      stopped,
    ])
  );
  const events = await readMessageEvents(await sendStream(world));
  assert.equal(events.at(-2)?.usage.cost_exact, "0.00465");
});

Deno.test("messages usage: usage after the end counts", async () => {
  using world = await messagesWorld();
  world.upstream.once(() =>
    messageStream([
      start({ usage: null }),
      opened(0),
      said(0, "Hello there"),
      closed(0),
      ended("end_turn", null),
      stopped,
      { type: "usage", usage: claudeUsage(1000, 100) },
    ])
  );
  const events = await readMessageEvents(await sendStream(world));
  assert.equal(events.at(-2)?.usage.cost_exact, "0.0045");
});

const tiers = {
  serviceTiers: { fast: { factor: "6" }, priority: { factor: "1.5" }, us: { factor: "1.1" } },
};
for (
  const [asked, reported, cost] of [
    [{ speed: "fast" }, { speed: "fast" }, "0.027"],
    [{ speed: "fast" }, { speed: "standard" }, "0.0045"],
    [{ service_tier: "auto" }, { service_tier: "priority" }, "0.00675"],
    [{ service_tier: "standard_only" }, {}, "0.0045"],
    [{ inference_geo: "us" }, { inference_geo: "us" }, "0.00495"],
    [{ inference_geo: "global" }, { inference_geo: "global" }, "0.0045"],
    [{}, { inference_geo: "us" }, "0.00495"],
    [{ speed: "fast" }, { speed: "standard", service_tier: undefined }, "0.0045"],
    [{ speed: "fast" }, { speed: "standard", service_tier: "priority" }, "0.00675"],
    [{ speed: "fast" }, { service_tier: undefined }, "0.027"],
    [{ speed: "fast" }, { speed: null, service_tier: null }, "0.027"],
    [{ inference_geo: "us" }, { inference_geo: "global", service_tier: undefined }, "0.0045"],
    [{ inference_geo: "us" }, { inference_geo: "not_available", service_tier: null }, "0.0045"],
    [{ inference_geo: "us" }, { service_tier: undefined }, "0.00495"],
    [{}, { inference_geo: "not_available", speed: null, service_tier: null }, "0.0045"],
  ] as const
) {
  Deno.test(`messages usage: ${JSON.stringify(asked)} answered by ${JSON.stringify(reported)} costs ${cost}`, async () => {
    using world = await messagesWorld({ price: tiers });
    const usage = claudeUsage(1000, 100, reported);
    world.upstream.once(() => message({ usage }));
    assert.equal((await send(world, asked)).body.usage.cost_exact, cost);
    world.upstream.once(() =>
      messageStream([
        start({ usage: { ...usage, output_tokens: 1 } }),
        opened(0),
        said(0, "Hello there"),
        closed(0),
        ended("end_turn", { output_tokens: 100 }),
        stopped,
      ])
    );
    const events = await readMessageEvents(await sendStream(world, asked));
    assert.equal(events.at(-2)?.usage.cost_exact, cost);
  });
}

for (const field of [{ speed: "fast" }, { service_tier: "priority" }, { inference_geo: "us" }]) {
  const [name = ""] = Object.keys(field);
  Deno.test(`messages usage: ${JSON.stringify(field)} without a price is 400`, async () => {
    using world = await messagesWorld();
    const { status, body } = await send(world, field);
    assert.equal(status, 400);
    assert.deepEqual([body.error.type, body.error.param], ["invalid_request_error", name]);
    assert.equal(world.upstream.calls.length, 0);
  });
}

const hour = { type: "ephemeral", ttl: "1h" };
const text = { type: "text", text: "Hi", cache_control: hour };
const user = (content: unknown) => ({ messages: [{ role: "user", content }] });
for (
  const [where, fields] of [
    ["the request", { cache_control: hour }],
    ["a block", user([text])],
    ["the system prompt", { system: [text] }],
    ["a tool", { tools: [{ name: "a", input_schema: { type: "object" }, cache_control: hour }] }],
    ["a result of a tool", user([{ type: "tool_result", tool_use_id: "a", content: [text] }])],
    [
      "a document",
      user([{
        type: "document",
        source: { type: "content", content: [text] },
      }]),
    ],
  ] as const
) {
  Deno.test(`messages usage: a hold covers cache entries of an hour that ${where} asks for`, async () => {
    using world = await messagesWorld({ price: { cacheWriteHour: "6000" } });
    const held: string[] = [];
    world.upstream.reply(async () => {
      held.push((await world.balance("ada")).held);
      return message();
    });
    await send(world, { max_tokens: 1, ...fields });
    assert.ok(Number(held[0]) >= 0.5, `held ${held}`);
  });
}
