import assert from "node:assert/strict";
import fc from "fast-check";
import { usageOf } from "../../support/chat.ts";
import {
  anthropic,
  claude,
  messagesWorld,
  readMessageEvents,
  send,
  sendStream,
} from "../../support/messages.ts";
import { always } from "../../support/property.ts";
import {
  chunk,
  completion,
  helloStream,
  sse,
  sseBytes,
  usage,
  usageChunk,
} from "../../support/upstream.ts";
import type { Body, World } from "../../support/world.ts";

const upstream = { url: "https://own.test/v1", apiKey: "sk-up", formats: ["chat"] };

async function bridgedWorld(): Promise<World> {
  const world = await messagesWorld({ project: { upstream } });
  world.upstream.reply(({ body }) => body.stream ? helloStream() : completion());
  return world;
}

Deno.test("messages to chat: the upstream is called for a chat, and charged by its classes", async () => {
  using world = await bridgedWorld();
  const used = usage(100, 5, {
    prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 10 },
  });
  world.upstream.once(() => completion({ usage: used }));
  const { status, body, response } = await send(world, {
    system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
    thinking: { type: "adaptive" },
  });
  assert.equal(status, 200, JSON.stringify(body));
  const [call] = world.upstream.calls;
  assert.equal(call?.url, "https://own.test/v1/chat/completions");
  assert.equal(call?.headers.get("authorization"), "Bearer sk-up");
  assert.equal(call?.headers.get("anthropic-version"), null);
  assert.deepEqual(call?.body, {
    model: claude,
    messages: [{ role: "system", content: "Be brief." }, { role: "user", content: "Hi" }],
    max_tokens: 1000,
  });
  const { id, content, stop_reason, usage: shown } = body;
  assert.match(id, /^msg_/);
  assert.deepEqual([content, stop_reason], [[{ type: "text", text: "Hello there" }], "end_turn"]);
  const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens } = shown;
  assert.deepEqual([input_tokens, cache_read_input_tokens, cache_creation_input_tokens], [
    30,
    60,
    10,
  ]);
  // 30 × 3 + 60 × 0.3 + 10 × 3.75 + 5 × 15, for a million each.
  assert.equal(response.headers.get("x-service-cost"), "0.0002205");
});

Deno.test("messages to chat: a stream is Anthropic's, with the charged usage at its end", async () => {
  using world = await bridgedWorld();
  const events = await readMessageEvents(await sendStream(world));
  assert.deepEqual(events.map(({ type }) => type), [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  const { usage: shown, delta } = events.at(-2) ?? {};
  assert.deepEqual([shown.input_tokens, shown.output_tokens, delta.stop_reason], [
    10,
    5,
    "end_turn",
  ]);
  assert.equal((await usageOf(world))[0]?.usage.source, "provider");
});

const tools: Body[] = [{ name: "weather", input_schema: { type: "object" } }];
Deno.test("messages to chat: Anthropic's client reads thinking, parallel calls and their end, and goes on", async () => {
  using world = await bridgedWorld();
  const piece = (index: number, args: string, more: Body = {}) =>
    chunk({ tool_calls: [{ index, ...more, function: { arguments: args, ...more.function } }] });
  world.upstream.once(() =>
    sse([
      chunk({ reasoning_content: "hm" }),
      chunk({ content: "I look." }),
      piece(0, "", { id: "a", type: "function", function: { name: "weather", arguments: "" } }),
      piece(1, "", { id: "b", type: "function", function: { name: "weather", arguments: "" } }),
      piece(0, '{"city":"Köln"}'),
      piece(1, '{"city":"Bonn"}'),
      chunk({}, "tool_calls"),
      usageChunk(),
    ])
  );
  const client = anthropic(world);
  const ask = {
    model: claude,
    max_tokens: 4000,
    thinking: { type: "enabled" as const, budget_tokens: 2000 },
    tools: [{ name: "weather", input_schema: { type: "object" as const } }],
  };
  const messages = [{ role: "user" as const, content: "Weather?" }];
  const made = await client.messages.stream({ ...ask, messages }).finalMessage();
  assert.deepEqual(made.content.map(({ type }) => type), [
    "thinking",
    "text",
    "tool_use",
    "tool_use",
  ]);
  assert.deepEqual(made.content.slice(2).map((block) => block.type === "tool_use" && block.input), [
    { city: "Köln" },
    { city: "Bonn" },
  ]);
  assert.equal(made.stop_reason, "tool_use");
  assert.equal(made.usage.output_tokens, 5);
  const results = ["a", "b"].map((id) => ({
    type: "tool_result" as const,
    tool_use_id: id,
    content: "sun",
  }));
  const again = await client.messages.create({
    ...ask,
    messages: [...messages, { role: "assistant", content: made.content }, {
      role: "user",
      content: results,
    }],
  });
  assert.equal(again.content[0]?.type, "text");
  assert.deepEqual(world.upstream.calls[1]?.body.messages.slice(1).map(({ role }: Body) => role), [
    "assistant",
    "tool",
    "tool",
  ]);
});

Deno.test("messages to chat: what chat cannot carry is 400 in Anthropic's shape, and free", async () => {
  using world = await bridgedWorld();
  const { status, body } = await send(world, {
    tools: [{ type: "bash_20250124", name: "bash" }],
  });
  assert.equal(status, 400);
  assert.deepEqual([body.type, body.error.type, body.error.param], [
    "error",
    "invalid_request_error",
    "tools.0.type",
  ]);
  assert.equal(world.upstream.calls.length, 0);
  assert.equal((await world.balance("ada")).available, "10");
});

Deno.test("messages to chat: an error of the upstream, whole or in the stream, is Anthropic's, and free", async () => {
  using world = await bridgedWorld();
  const error = { error: { message: "slow down", type: "requests", code: "rate_limit_exceeded" } };
  world.upstream.once(() => Response.json(error, { status: 429 }));
  assert.equal((await send(world)).status, 429);
  world.upstream.once(() => sse([error]));
  const response = await sendStream(world);
  assert.equal(response.status, 429);
  assert.equal((await response.json()).error.type, "rate_limit_error");
  assert.equal((await usageOf(world)).length, 0);
  world.upstream.once(() =>
    sse([chunk({ content: "Hello" }), { error: { message: "gone" } }], { done: false })
  );
  const events = await readMessageEvents(await sendStream(world));
  assert.equal(events.at(-1)?.error.message, "gone");
  assert.equal((await usageOf(world))[0]?.usage.source, "estimated", "what came is charged");
});

Deno.test("messages to chat: absent usage is counted by ourselves, and a broken stream has no end", async () => {
  using world = await bridgedWorld();
  world.upstream.once(() => completion({ usage: undefined }));
  await send(world);
  const hello = [chunk({ content: "Hello" }), chunk({ content: " there" })];
  world.upstream.once(() => sse([...hello, chunk({}, "stop")]));
  await readMessageEvents(await sendStream(world));
  world.upstream.once(() => sse(hello, { done: false }));
  const events = await readMessageEvents(await sendStream(world));
  assert.equal(events.at(-1)?.type, "error");
  const entries = await usageOf(world);
  assert.deepEqual(entries.map(({ usage }) => [usage.source, usage.outputTokens]), [
    ["estimated", 2],
    ["estimated", 2],
    ["estimated", 2],
  ]);
});

Deno.test("messages to chat: an upstream without messages is asked for a chat, after two refusals at once", async () => {
  using world = await messagesWorld({
    project: { upstream: { url: upstream.url, apiKey: "sk-up" } },
  });
  world.upstream.reply(({ url }) =>
    url.endsWith("/messages")
      ? Response.json({ error: { message: "Not Found" } }, { status: 404 })
      : completion()
  );
  for (let calls = 0; calls < 3; calls++) assert.equal((await send(world)).status, 200);
  assert.deepEqual(world.upstream.calls.map(({ url }) => url.replace("https://own.test/v1", "")), [
    "/messages",
    "/chat/completions",
    "/messages",
    "/chat/completions",
    "/chat/completions",
  ]);
});

Deno.test("messages to chat: a stream, cut anywhere, costs and says what the whole response does", async () => {
  using world = await bridgedWorld();
  const texts = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 8 }), {
    minLength: 1,
    maxLength: 4,
  });
  await always(
    20,
    fc.asyncProperty(texts, fc.integer({ min: 1, max: 50 }), async (words, length) => {
      const used = usage(10, 5, { completion_tokens_details: { reasoning_tokens: 2 } });
      const message = {
        role: "assistant",
        content: words.join(""),
        tool_calls: [{
          id: "a",
          type: "function",
          function: { name: "weather", arguments: '{"a":[1]}' },
        }],
      };
      const asked = { tools };
      world.upstream.once(() =>
        completion({ usage: used, choices: [{ index: 0, message, finish_reason: "tool_calls" }] })
      );
      const whole = await send(world, asked);
      const bytes = new Uint8Array(
        await sse([
          ...words.map((content) => chunk({ content })),
          chunk({ tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) }),
          chunk({}, "tool_calls"),
          usageChunk(used),
        ]).arrayBuffer(),
      );
      const parts: Uint8Array[] = [];
      for (let at = 0; at < bytes.length; at += length) parts.push(bytes.slice(at, at + length));
      world.upstream.once(() => sseBytes(parts));
      const joined = await send(world, asked);
      const { id: _, model: __, ...expected } = whole.body;
      const { id: ___, model: ____, ...got } = joined.body;
      assert.deepEqual(got, expected);
    }),
  );
});
