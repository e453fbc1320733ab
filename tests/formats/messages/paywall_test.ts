import assert from "node:assert/strict";
import Anthropic from "@anthropic-ai/sdk";
import { usageOf } from "../../support/chat.ts";
import {
  anthropic,
  claude,
  claudeUsage,
  closed,
  ended,
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

const hello: Anthropic.MessageCreateParamsNonStreaming = {
  model: claude,
  max_tokens: 1_000,
  messages: [{ role: "user", content: "Hi" }],
};
const link = /Top up here to continue: https?:\/\/\S+/;

Deno.test("messages paywall: it is an ordinary message that used nothing", async () => {
  using world = await messagesWorld({ balance: null });
  const { status, body, response } = await send(world);
  assert.equal(status, 200);
  assert.match(body.content[0].text, link);
  assert.deepEqual(
    [body.type, body.role, body.model, body.stop_reason, body.stop_sequence],
    ["message", "assistant", claude, "end_turn", null],
  );
  assert.deepEqual([body.usage.input_tokens, body.usage.output_tokens, body.usage.cost], [0, 0, 0]);
  assert.equal(body.paywall.reason, "insufficient_funds");
  assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
  assert.ok(response.headers.get("request-id"));
  assert.equal(world.upstream.calls.length, 0);
});

Deno.test("messages paywall: streamed, it is the seven events of a message", async () => {
  using world = await messagesWorld({ balance: null });
  const events = await readMessageEvents(await sendStream(world));
  assert.deepEqual(events.map(({ type }) => type), [
    "message_start",
    "content_block_start",
    "ping",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
  ]);
  assert.equal(events[0]?.message.paywall.reason, "insufficient_funds");
  assert.match(events[3]?.delta.text, link);
  assert.equal(events[5]?.delta.stop_reason, "end_turn");
});

const format = { type: "json_schema", schema: { type: "object" } };
for (
  const fields of [
    { output_config: { format } },
    { output_format: format },
    { tools: [{ name: "a", input_schema: {} }], tool_choice: { type: "tool", name: "a" } },
  ]
) {
  Deno.test(`messages paywall: for ${Object.keys(fields)} it is a refusal that says the text too`, async () => {
    using world = await messagesWorld({ balance: null });
    const { body } = await send(world, fields);
    assert.match(body.content[0].text, link);
    assert.equal(body.stop_reason, "refusal");
    assert.equal(body.stop_details.explanation, body.content[0].text);
    const events = await readMessageEvents(await sendStream(world, fields));
    assert.equal(events.at(-2)?.delta.stop_details.explanation, body.content[0].text);
  });
}

Deno.test("messages paywall: a limit of requests is said in the same way, where the project wants it", async () => {
  const limits = { reply: "message", user: { requestsPerMinute: 1 } };
  using world = await messagesWorld({ project: { limits } });
  await send(world);
  const { status, body } = await send(world);
  assert.equal(status, 200);
  assert.equal(body.paywall.reason, "limit_reached");
});

Deno.test("sdk: a message, a stream, and what they cost", async () => {
  using world = await messagesWorld();
  const client = anthropic(world);
  const made = await client.messages.create(hello);
  assert.deepEqual(made.content, [{ type: "text", text: "Hello there" }]);
  assert.ok(made._request_id);
  const streamed = await client.messages.stream(hello).finalMessage();
  assert.deepEqual(streamed.content.map((block) => ({ ...block })), [
    { type: "text", text: "Hello there" },
  ]);
  assert.deepEqual(
    [streamed.usage.input_tokens, streamed.usage.output_tokens, streamed.stop_reason],
    [10, 5, "end_turn"],
  );
  const raw = await client.messages.create({ ...hello, stream: true });
  const types: string[] = [];
  for await (const event of raw) types.push(event.type);
  assert.equal(types.at(-1), "message_stop");
  assert.equal((await usageOf(world)).length, 3);
});

Deno.test("sdk: tools and thinking, streamed", async () => {
  using world = await messagesWorld();
  world.upstream.once(() =>
    messageStream([
      start(),
      opened(0, { type: "thinking", thinking: "", signature: "" }),
      { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Hm" } },
      { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "s" } },
      closed(0),
      opened(1, { type: "tool_use", id: "toolu_1", name: "look", input: {} }),
      {
        type: "content_block_delta",
        index: 1,
        delta: { type: "input_json_delta", partial_json: '{"at":1}' },
      },
      closed(1),
      ended("tool_use", claudeUsage(10, 20)),
      stopped,
    ])
  );
  const made = await anthropic(world).messages.stream({
    ...hello,
    max_tokens: 4_000,
    thinking: { type: "enabled", budget_tokens: 2_000 },
    tools: [{ name: "look", input_schema: { type: "object" } }],
  }).finalMessage();
  assert.equal(made.stop_reason, "tool_use");
  const [thinking, call] = made.content;
  assert.equal(thinking?.type === "thinking" && thinking.signature, "s");
  assert.deepEqual(call?.type === "tool_use" && call.input, { at: 1 });
});

Deno.test("sdk: the paywall, then a top-up, then the model, with the paywall in the history", async () => {
  using world = await messagesWorld({ balance: null });
  const client = anthropic(world);
  const refused = await client.messages.stream(hello).finalMessage();
  const [block] = refused.content;
  assert.match(block?.type === "text" ? block.text : "", link);
  await world.deposit("ada", "1");
  const history = [
    ...hello.messages,
    { role: "assistant" as const, content: refused.content },
    { role: "user" as const, content: "Now?" },
  ];
  const made = await client.messages.create({ ...hello, messages: history });
  assert.deepEqual(made.content, [{ type: "text", text: "Hello there" }]);
});

Deno.test("sdk: a notice of the balance is a part of the text", async () => {
  using world = await messagesWorld({ balance: "0.02" });
  world.upstream.once(() =>
    messageStream([start(), opened(0), closed(0), ended("max_tokens"), stopped])
  );
  const stream = anthropic(world).messages.stream({ ...hello, max_tokens: 32_000 });
  const made = await stream.finalMessage();
  assert.match(await stream.finalText(), /Top up here to get more: https?:/);
  assert.equal(made.stop_reason, "end_turn");
});

Deno.test("sdk: errors are of its own classes, with the request's id", async () => {
  using world = await messagesWorld();
  const request = (client: Anthropic) => client.messages.create(hello);
  await assert.rejects(
    request(anthropic(world, { apiKey: "sk_wrong" })),
    (error) =>
      error instanceof Anthropic.AuthenticationError && error.type === "authentication_error" &&
      /not valid/.test(error.message) && Boolean(error.requestID),
  );
  const model = "other";
  await assert.rejects(
    anthropic(world).messages.create({ ...hello, model }),
    Anthropic.NotFoundError,
  );
  const broken = { type: "error", error: { type: "overloaded_error", message: "Busy" } };
  world.upstream.once(() => messageStream([start(), opened(0), said(0, "Hello"), broken]));
  await assert.rejects(
    anthropic(world).messages.stream(hello).finalMessage(),
    (error) => error instanceof Anthropic.APIError && error.type === "overloaded_error",
  );
});

Deno.test("sdk: tokens are counted", async () => {
  using world = await messagesWorld();
  world.upstream.once(() => Response.json({ input_tokens: 42 }));
  const { max_tokens: _, ...body } = hello;
  assert.deepEqual(await anthropic(world).messages.countTokens(body), { input_tokens: 42 });
  assert.ok((await anthropic(world).beta.messages.create({ ...hello, betas: ["a"] })).id);
  assert.equal(world.upstream.calls.at(-1)?.headers.get("anthropic-beta"), "a");
});
