import assert from "node:assert/strict";
import fc from "fast-check";
import { toChatUsage } from "../../../src/formats/bridges/chat_to_messages/usage.ts";
import { usageFromResponse } from "../../../src/formats/bridges/chat_to_responses/usage.ts";
import { toMessagesUsage } from "../../../src/formats/bridges/messages_to_chat/usage.ts";
import type { Json, JsonObject } from "../../../src/base/json.ts";
import { readReportedExtras, readUsage } from "../../../src/pricing/usage.ts";
import { always } from "../../support/property.ts";

/** What the meter reads of a usage. */
function read(raw: JsonObject) {
  const usage = readUsage(raw);
  return usage && { counts: usage.counts, reasoning: usage.reasoning, ...readReportedExtras(raw) };
}

const dialects: [string, JsonObject][] = [
  ["OpenAI", {
    prompt_tokens: 100,
    completion_tokens: 50,
    total_tokens: 150,
    prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 20, audio_tokens: 0 },
  }],
  ["OpenAI with an hour's cache", {
    prompt_tokens: 100,
    completion_tokens: 50,
    total_tokens: 150,
    prompt_tokens_details: {
      cached_tokens: 1,
      cache_write_tokens: 10,
      cache_write_tokens_details: { ttl_30m_tokens: 4, ttl_12h_tokens: 6 },
    },
  }],
  ["llama.cpp", { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }],
  ["DeepSeek", {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 15,
    prompt_cache_hit_tokens: 4,
    prompt_cache_miss_tokens: 6,
  }],
  ["xAI, whose reasoning is beside", {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 35,
    completion_tokens_details: { reasoning_tokens: 20 },
    num_sources_used: 3,
    cost_in_usd_ticks: 12_000_000,
  }],
  ["Gemini, whose reasoning shows in the total alone", {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 40,
    prompt_tokens_details: { image_tokens: 8, cached_tokens: 3 },
  }],
  ["Gemini's own", { promptTokenCount: 10, candidatesTokenCount: 5, totalTokenCount: 15 }],
  ["OpenRouter for Claude", {
    prompt_tokens: 100,
    completion_tokens: 5,
    total_tokens: 105,
    cost: 0.0123,
    prompt_tokens_details: { cached_tokens: 90, cache_write_tokens: 5 },
  }],
  ["a router with Anthropic's names", {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 15,
    cache_read_input_tokens: 100,
    cache_creation_input_tokens: 20,
  }],
  ["Perplexity", {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 15,
    citation_tokens: 300,
    reasoning_tokens: 50,
    num_search_queries: 2,
    search_context_size: "low",
  }],
  ["tools that read input", {
    prompt_tokens: 10,
    completion_tokens: 5,
    total_tokens: 1_000,
    completion_tokens_details: { reasoning_tokens: 3 },
  }],
];
for (const [what, raw] of dialects) {
  Deno.test(`usage as messages: ${what} reads as the same tokens and the same price`, () => {
    const made = toMessagesUsage(raw, null) ?? assert.fail();
    assert.deepEqual(read(made), read(raw));
  });
}

const count = fc.oneof(
  fc.nat(100),
  fc.nat(5_000),
  fc.constantFrom<Json>(null, -1, 0.5, "7", 1e9),
);
const chatUsage = fc.record<JsonObject>({
  prompt_tokens: count,
  completion_tokens: count,
  total_tokens: count,
  input_tokens: count,
  output_tokens: count,
  cached_tokens: count,
  prompt_cache_hit_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  reasoning_tokens: count,
  citation_tokens: count,
  prompt_tokens_details: fc.oneof(
    fc.record({
      cached_tokens: count,
      cache_write_tokens: count,
      image_tokens: count,
      cache_write_tokens_details: fc.record({ ttl_12h_tokens: count }, { requiredKeys: [] }),
    }, { requiredKeys: [] }),
    fc.constant(null),
  ),
  completion_tokens_details: fc.oneof(
    fc.record({ reasoning_tokens: count, audio_tokens: count, image_tokens: count }, {
      requiredKeys: [],
    }),
    fc.constant(null),
  ),
  service_tier: fc.constantFrom<Json>("flex", "default", null),
  cost: fc.constantFrom<Json>(0.5, 0, null, { total_cost: 0.1 }),
}, { requiredKeys: [] });

Deno.test("usage as messages: every dialect, however mixed, reads as the same tokens", () =>
  always(
    5_000,
    fc.property(chatUsage, (raw) => {
      const made = toMessagesUsage(raw, null);
      assert.deepEqual(made && read(made), read(raw));
    }),
  ));

const messagesUsage = fc.record<JsonObject>({
  input_tokens: count,
  output_tokens: count,
  cache_read_input_tokens: count,
  cache_creation_input_tokens: count,
  cache_creation: fc.oneof(
    fc.record({ ephemeral_5m_input_tokens: count, ephemeral_1h_input_tokens: count }, {
      requiredKeys: [],
    }),
    fc.constant(null),
  ),
  output_tokens_details: fc.oneof(
    fc.record({ thinking_tokens: count }, { requiredKeys: [] }),
    fc.constant(null),
  ),
  server_tool_use: fc.oneof(fc.record({ web_search_requests: count }), fc.constant(null)),
  service_tier: fc.constantFrom<Json>("priority", "standard", null),
  speed: fc.constantFrom<Json>("fast", "standard", null),
  input_tokens_details: fc.constantFrom<Json>(null, {}, { image_tokens: 1 }),
  cached_tokens: count,
}, { requiredKeys: [] });

Deno.test("usage as chat: Anthropic's classes, also of both cache lives, read as before", () =>
  always(
    5_000,
    fc.property(messagesUsage, (raw) => {
      assert.deepEqual(read(toChatUsage(raw)), read(raw));
    }),
  ));

Deno.test("usage as chat: clients find the cached and the reasoning tokens by OpenAI's names", () => {
  const made = toChatUsage({
    input_tokens: 10,
    cache_read_input_tokens: 100,
    cache_creation_input_tokens: 20,
    output_tokens: 7,
    output_tokens_details: { thinking_tokens: 3 },
  });
  assert.deepEqual(made.prompt_tokens_details, { cached_tokens: 100, cache_write_tokens: 20 });
  assert.deepEqual(made.completion_tokens_details, { thinking_tokens: 3, reasoning_tokens: 3 });
});

const details = (name: string) =>
  fc.oneof(fc.record<JsonObject>({ [name]: count }), fc.constant(null));
const responseUsage = fc.record<JsonObject>({
  input_tokens: count,
  output_tokens: count,
  total_tokens: count,
  input_tokens_details: details("cached_tokens"),
  output_tokens_details: details("reasoning_tokens"),
  cache_read_input_tokens: count,
  tool_usage: fc.constantFrom<Json>(null, { web_search: { num_requests: 2 } }),
}, { requiredKeys: [] });

Deno.test("usage as chat: that of responses reads as the same tokens and the same price", () =>
  always(
    5_000,
    fc.property(responseUsage, (raw) => {
      assert.deepEqual(read(usageFromResponse(raw)), read(raw));
    }),
  ));
