import assert from "node:assert/strict";
import { usageOf } from "../../support/chat.ts";
import {
  asAda,
  claude,
  claudeUsage,
  closed,
  ended,
  helloEvents,
  message,
  messageBody,
  messageObject,
  messagesPath,
  messageStream,
  messagesWorld,
  opened,
  readMessageEvents,
  said,
  send,
  sendStream,
  start,
  stopped,
  textIn,
} from "../../support/messages.ts";

Deno.test("messages: a message is passed on, charged, and says its cost", async () => {
  using world = await messagesWorld();
  const { status, body, response } = await send(world, { metadata: { user_id: "x".repeat(300) } });
  assert.equal(status, 200);
  const { usage, ...message } = body;
  const { usage: _, ...sent } = messageObject();
  assert.deepEqual(message, sent);
  assert.deepEqual(usage, { ...claudeUsage(10, 5), cost: 0.000105, cost_exact: "0.000105" });
  assert.equal(response.headers.get("x-service-cost"), "0.000105");
  assert.equal(response.headers.get("x-service-balance"), "9.999895");
  assert.equal(response.headers.get("request-id"), response.headers.get("x-request-id"));
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.source, "provider");
});

Deno.test("messages: the upstream gets the key in both headers, and the caller's version and betas", async () => {
  using world = await messagesWorld();
  await send(world);
  const betas = { "anthropic-version": "2026-10-21", "anthropic-beta": "one,two" };
  await world.json(`${messagesPath}?beta=true`, {
    body: messageBody(),
    headers: { ...asAda, ...betas, "x-stainless-os": "Linux" },
  });
  const [first, second] = world.upstream.calls;
  assert.equal(first?.url, "https://upstream.test/v1/messages");
  assert.equal(second?.url, first?.url);
  assert.equal(first?.headers.get("x-api-key"), "upstream-secret-key");
  assert.equal(first?.headers.get("authorization"), "Bearer upstream-secret-key");
  assert.equal(first?.headers.get("anthropic-version"), "2023-06-01");
  assert.equal(first?.headers.get("anthropic-beta"), null);
  assert.equal(second?.headers.get("anthropic-version"), "2026-10-21");
  assert.equal(second?.headers.get("anthropic-beta"), "one,two");
  assert.equal(second?.headers.get("x-stainless-os"), null);
});

for (const path of ["/v1/ada/messages", "/v1/ada/v1/messages", "/v1/ada/v1/messages?beta=true"]) {
  Deno.test(`messages: the user may be in the path: ${path}`, async () => {
    using world = await messagesWorld();
    const { status } = await world.json(path, {
      body: messageBody(),
      key: null,
      headers: { "x-api-key": world.apiKey },
    });
    assert.equal(status, 200);
    assert.equal((await usageOf(world)).length, 1);
  });
}

Deno.test("messages: a stream is passed on event by event, and ends with the usage and the cost", async () => {
  using world = await messagesWorld();
  const events = await readMessageEvents(await sendStream(world));
  const sent = helloEvents();
  assert.deepEqual(events.slice(0, 6), sent.slice(0, 6));
  const [delta, stop, ...more] = events.slice(6);
  assert.deepEqual(delta?.delta, { stop_reason: "end_turn", stop_sequence: null });
  assert.deepEqual(delta?.usage, {
    ...claudeUsage(10, 5),
    cost: 0.000105,
    cost_exact: "0.000105",
  });
  assert.deepEqual(stop, { type: "message_stop" });
  assert.deepEqual(more, []);
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.source, "provider");
  assert.equal((await world.balance("ada")).balance, "9.999895");
});

Deno.test("messages: a stream for a caller who wants none becomes a message", async () => {
  using world = await messagesWorld();
  world.upstream.once(() =>
    messageStream([
      start({ usage: claudeUsage(10, 1) }),
      opened(0, { type: "thinking", thinking: "", signature: "" }),
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm" } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "s" } },
      closed(0),
      opened(1),
      said(1, "Let me"),
      said(1, " see"),
      closed(1),
      opened(2, { type: "tool_use", id: "toolu_1", name: "look", input: {} }),
      ...['{"at":', ' "12345678901234567890"}'].map((partial_json) => ({
        type: "content_block_delta",
        index: 2,
        delta: { type: "input_json_delta", partial_json },
      })),
      closed(2),
      ended("tool_use", { output_tokens: 30 }),
      stopped,
    ])
  );
  const { body } = await send(world);
  assert.deepEqual(body.content, [
    { type: "thinking", thinking: "Hm", signature: "s" },
    { type: "text", text: "Let me see" },
    { type: "tool_use", id: "toolu_1", name: "look", input: { at: "12345678901234567890" } },
  ]);
  assert.equal(body.stop_reason, "tool_use");
  assert.equal(body.usage.output_tokens, 30);
  assert.equal(body.usage.cost_exact, "0.00048");
});

Deno.test("messages: a message for a caller who wants a stream becomes events", async () => {
  using world = await messagesWorld();
  const content = [
    { type: "thinking", thinking: "Hm", signature: "s" },
    { type: "text", text: "See" },
    { type: "tool_use", id: "toolu_1", name: "look", input: { at: 1 } },
  ];
  world.upstream.once(() => message({ content, stop_reason: "tool_use" }));
  const events = await readMessageEvents(await sendStream(world));
  assert.deepEqual(events.map(({ type }) => type.replace("content_block_", "")), [
    ...["message_start", "start", "delta", "delta", "stop", "start", "delta", "stop"],
    ...["start", "delta", "stop", "message_delta", "message_stop"],
  ]);
  assert.equal(textIn(events), "See");
  assert.equal(events.at(-2)?.delta.stop_reason, "tool_use");
  assert.equal(events.at(-2)?.usage.cost_exact, "0.000105");
});

Deno.test("messages: what an upstream leaves out is added", async () => {
  using world = await messagesWorld();
  world.upstream.once(() =>
    Response.json({ content: "Hello", usage: { input_tokens: 10, output_tokens: 5 } })
  );
  const { body } = await send(world);
  assert.match(body.id, /^msg_/);
  assert.deepEqual(
    [body.type, body.role, body.model, body.stop_reason, body.stop_sequence],
    ["message", "assistant", claude, "end_turn", null],
  );
  assert.deepEqual(body.content, [{ type: "text", text: "Hello" }]);
  world.upstream.once(() =>
    messageStream([
      { type: "content_block_delta", delta: { type: "text_delta", text: "Hello" } },
      ended("end_turn", { input_tokens: 10, output_tokens: 5 }),
    ])
  );
  const events = await readMessageEvents(await sendStream(world));
  assert.deepEqual(events.map(({ type }) => type), [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  assert.match(events[0]?.message.id, /^msg_/);
  assert.equal(events[2]?.index, 0);
});

Deno.test("messages: where the upstream reports nothing, our own count is charged and shown", async () => {
  using world = await messagesWorld();
  for (const usage of [null, {}, { input_tokens: 0, output_tokens: 0 }, "none"]) {
    world.upstream.once(() => message({ usage }));
    const { body } = await send(world);
    assert.ok(body.usage.input_tokens > 0 && body.usage.output_tokens > 0, JSON.stringify(usage));
    world.upstream.once(() =>
      messageStream([
        start({ usage }),
        opened(0),
        said(0, "Hello there"),
        closed(0),
        { ...ended("end_turn", null), usage },
        stopped,
      ])
    );
    const events = await readMessageEvents(await sendStream(world));
    assert.deepEqual(events.at(-2)?.usage.output_tokens, body.usage.output_tokens);
    assert.equal(events.at(-2)?.usage.cost_exact, body.usage.cost_exact);
  }
  for (const { usage } of await usageOf(world)) assert.equal(usage.source, "estimated");
});
