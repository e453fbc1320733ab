import assert from "node:assert/strict";
import fc from "fast-check";
import OpenAI from "openai";
import { chat, chatStream, usageOf } from "../../support/chat.ts";
import { always, anyText } from "../../support/property.ts";
import { readEvents, sseBytes } from "../../support/upstream.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";
import { eventsOf, framesOf } from "./support.ts";

const price = {
  input: "1",
  output: "10",
  cachedInput: "0.1",
  cacheWrite: "2",
  cacheWriteHour: "4",
  maxOutputTokens: 1000,
};
const upstream = { url: "https://own.test/v1", apiKey: "sk-ant", formats: ["messages"] };
const project = { pricing: { models: { "test-model": price } }, upstream };

const used = {
  input_tokens: 10,
  cache_read_input_tokens: 100,
  cache_creation_input_tokens: 30,
  cache_creation: { ephemeral_5m_input_tokens: 10, ephemeral_1h_input_tokens: 20 },
  output_tokens: 5,
};
/** 10 × 1 + 100 × 0.1 + 10 × 2 + 20 × 4 + 5 × 10, for a million each. */
const cost = "0.000170";
const message = (more: Body = {}): Body => ({
  id: "msg_up",
  type: "message",
  role: "assistant",
  model: "test-model",
  content: [{ type: "text", text: "Hello there" }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: used,
  ...more,
});

const stream = (events: readonly Body[]) => sseBytes([new TextEncoder().encode(framesOf(events))]);

async function paidWorld(more: Body = {}): Promise<World> {
  const world = await createWorld({ project: { ...project, ...more } });
  await world.deposit("ada", "1");
  return world;
}

Deno.test("chat to messages: the upstream is called as Anthropic's, and charged by each cache life", async () => {
  using world = await paidWorld();
  world.upstream.once(() => Response.json(message()));
  const { status, body, response } = await chat(world, { max_tokens: 50 });
  assert.equal(status, 200);
  const [call] = world.upstream.calls;
  assert.equal(call?.url, "https://own.test/v1/messages");
  assert.equal(call?.headers.get("x-api-key"), "sk-ant");
  assert.equal(call?.headers.get("anthropic-version"), "2023-06-01");
  assert.deepEqual(call?.body, {
    model: "test-model",
    max_tokens: 50,
    messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
  });
  assert.deepEqual(body.choices, [{
    index: 0,
    message: { role: "assistant", content: "Hello there", refusal: null },
    logprobs: null,
    finish_reason: "stop",
  }]);
  const { prompt_tokens, completion_tokens, total_tokens, prompt_tokens_details } = body.usage;
  assert.deepEqual([prompt_tokens, completion_tokens, total_tokens], [140, 5, 145]);
  assert.deepEqual(prompt_tokens_details, { cached_tokens: 100, cache_write_tokens: 30 });
  assert.equal(response.headers.get("x-service-cost"), cost.replace(/0+$/, ""));
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.cacheWriteHourTokens, 20);
  assert.equal(entry?.usage.source, "provider");
});

Deno.test("chat to messages: a stream has its role, its text, its end, usage where asked for, and [DONE]", async () => {
  using world = await paidWorld();
  world.upstream.reply(() => stream(eventsOf(message())));
  const response = await chatStream(world, { stream_options: { include_usage: true } });
  const events = await readEvents(response);
  assert.deepEqual(
    events.slice(0, -2).map(({ choices: [choice] }) => [choice.delta, choice.finish_reason]),
    [
      [{ role: "assistant", content: "" }, null],
      [{ content: "Hell" }, null],
      [{ content: "o th" }, null],
      [{ content: "ere" }, null],
      [{}, "stop"],
    ],
  );
  const [last, done] = events.slice(-2);
  assert.deepEqual([last.choices, last.usage.total_tokens, done], [[], 145, "[DONE]"]);
  assert.equal(last.usage.cost, 0.00017);
  const plain = await readEvents(await chatStream(world));
  assert.ok(plain.every((event) => event === "[DONE]" || !("usage" in event)));
  assert.equal((await usageOf(world)).length, 2);
  assert.equal(world.upstream.calls[0]?.body.stream, true);
  assert.equal("stream_options" in (world.upstream.calls[0]?.body ?? {}), false);
});

const thought = { type: "thinking", thinking: "Let me see", signature: "sig" };
const use = { type: "tool_use", id: "toolu_1", name: "f", input: { city: "Köln", n: [1, 2.5] } };
Deno.test("chat to messages: thinking and calls come as chat's, and go back as they came", async () => {
  using world = await paidWorld();
  const content = [thought, { type: "redacted_thinking", data: "x" }, {
    type: "text",
    text: "I call",
  }, use];
  world.upstream.once(() => Response.json(message({ content, stop_reason: "tool_use" })));
  const { body } = await chat(world, {
    tools: [{ type: "function", function: { name: "f", parameters: { type: "object" } } }],
    reasoning_effort: "low",
  });
  const [choice] = body.choices;
  assert.equal(choice.finish_reason, "tool_calls");
  assert.equal(choice.message.reasoning_content, "Let me see");
  world.upstream.once(() => Response.json(message()));
  const again = await chat(world, {
    messages: [
      { role: "user", content: "Hi" },
      choice.message,
      { role: "tool", tool_call_id: "toolu_1", content: "rain" },
    ],
  });
  assert.equal(again.status, 200);
  assert.deepEqual(world.upstream.calls[1]?.body.messages[1], { role: "assistant", content });
});

const words = fc.array(
  fc.oneof(
    anyText.map((text) => ({ type: "text", text: text.toWellFormed() })),
    fc.constant(thought),
    fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 2 }).map((input) => ({ ...use, input })),
  ),
  { maxLength: 4 },
).map((blocks) =>
  blocks.map((block, at) => "id" in block ? { ...block, id: `toolu_${at}` } : block)
);
Deno.test("chat to messages: a stream, cut anywhere, is the completion that the whole message is", async () => {
  using world = await paidWorld();
  await always(
    20,
    fc.asyncProperty(
      words,
      fc.integer({ min: 1, max: 40 }),
      fc.nat(),
      async (content, size, seed) => {
        const stop_reason = content.some(({ type }) => type === "tool_use")
          ? "tool_use"
          : "end_turn";
        const sent = message({ content, stop_reason });
        world.upstream.once(() => Response.json(sent));
        const whole = await chat(world);
        const bytes = new TextEncoder().encode(framesOf(eventsOf(sent, size)));
        const parts: Uint8Array[] = [];
        for (let at = 0, length = 1 + seed % 97; at < bytes.length; at += length) {
          parts.push(bytes.slice(at, at + length));
        }
        // A caller who did not ask for a stream gets its events as one response.
        world.upstream.once(() => sseBytes(parts));
        const joined = await chat(world);
        assert.equal(joined.status, 200);
        const { index: _, ...choice } = joined.body.choices[0];
        const { index: __, ...expected } = whole.body.choices[0];
        assert.deepEqual({ ...choice, message: filled(choice.message) }, {
          ...expected,
          message: filled(expected.message),
        });
        assert.equal(
          joined.response.headers.get("x-service-cost"),
          whole.response.headers.get("x-service-cost"),
        );
      },
    ),
  );
});

/** A message without a text: the stream's begins with an empty one. */
function filled({ content, ...message }: Body): Body {
  return { ...message, content: content ?? "" };
}

Deno.test("chat to messages: OpenAI's client reads streamed calls, whose input may come whole", async () => {
  using world = await paidWorld();
  const client = new OpenAI({
    apiKey: world.apiKey,
    baseURL: "http://localhost/v1",
    fetch: async (input: string | URL | Request, init?: RequestInit) =>
      await world.app.fetch(new Request(input, init)),
  });
  const other = { ...use, id: "toolu_2", input: {} };
  const events = eventsOf(message({ content: [thought, use, other], stop_reason: "tool_use" }));
  const start = events.find(({ content_block: block }) => block?.id === "toolu_2");
  if (start) start.content_block = { ...other, input: { whole: true } };
  world.upstream.once(() =>
    stream(events.filter(({ index, delta }) => index !== 2 || delta === undefined))
  );
  const made = await client.chat.completions.stream({
    model: "test-model",
    messages: [{ role: "user", content: "Hi" }],
    user: "ada",
  }).finalChatCompletion();
  const [choice] = made.choices;
  const calls = choice?.message.tool_calls?.map((call) =>
    call.type === "function" && JSON.parse(call.function.arguments)
  );
  assert.deepEqual(calls, [use.input, { whole: true }]);
  assert.equal(choice?.finish_reason, "tool_calls");
});

const reasons: [string, string][] = [
  ["max_tokens", "length"],
  ["stop_sequence", "stop"],
  ["refusal", "content_filter"],
  ["model_context_window_exceeded", "length"],
  ["something_new", "stop"],
];
for (const [reason, finish] of reasons) {
  Deno.test(`chat to messages: ${reason} is ${finish}`, async () => {
    using world = await paidWorld();
    world.upstream.once(() => Response.json(message({ stop_reason: reason })));
    assert.equal((await chat(world)).body.choices[0].finish_reason, finish);
    world.upstream.once(() => stream(eventsOf(message({ stop_reason: reason }))));
    const events = await readEvents(await chatStream(world));
    assert.equal(events.at(-2).choices[0].finish_reason, finish);
  });
}

const errors: [number, string, number][] = [
  [400, "invalid_request_error", 400],
  [401, "authentication_error", 502],
  [402, "billing_error", 502],
  [429, "rate_limit_error", 429],
  [529, "overloaded_error", 529],
];
for (const [status, type, shown] of errors) {
  Deno.test(`chat to messages: Anthropic's ${status} ${type} is ${shown}, also as an event, and free`, async () => {
    using world = await paidWorld();
    const error = { type: "error", error: { type, message: "why" }, request_id: "req_1" };
    world.upstream.once(() => Response.json(error, { status }));
    assert.equal((await chat(world)).status, shown);
    world.upstream.once(() => stream([error]));
    assert.equal((await chatStream(world)).status, shown);
    assert.equal((await usageOf(world)).length, 0);
  });
}

Deno.test("chat to messages: an error in mid-stream is the stream's last event, and what came is charged", async () => {
  using world = await paidWorld();
  const events = eventsOf(message()).slice(0, 5);
  const error = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
  world.upstream.once(() => stream([...events, error]));
  const sent = await readEvents(await chatStream(world));
  assert.equal(sent.at(-1).error.message, "Overloaded");
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.usage.cachedInputTokens, entry?.usage.cacheWriteHourTokens], [100, 20]);
});

Deno.test("chat to messages: a stream that breaks off is no complete one, and its prompt is charged as reported", async () => {
  using world = await paidWorld();
  world.upstream.once(() => stream(eventsOf(message()).slice(0, 6)));
  const sent = await readEvents(await chatStream(world));
  assert.equal(sent.at(-1).error.code, "upstream_error");
  assert.equal((await usageOf(world))[0]?.usage.cachedInputTokens, 100);
});

Deno.test("chat to messages: absent usage is counted by ourselves", async () => {
  using world = await paidWorld();
  world.upstream.once(() => Response.json(message({ usage: null })));
  assert.equal((await chat(world)).status, 200);
  const bare = eventsOf(message()).map(({ usage: _, ...event }) => event);
  delete bare[0]?.message?.usage;
  world.upstream.once(() => stream(bare));
  await readEvents(await chatStream(world));
  const entries = await usageOf(world);
  assert.deepEqual(entries.map(({ usage }) => [usage.source, usage.outputTokens]), [
    ["estimated", 2],
    ["estimated", 2],
  ]);
});

const invalid: [string, unknown][] = [
  ["a page", "<html>"],
  ["no content", message({ content: undefined })],
  ["content that is a text", message({ content: "Hello" })],
];
for (const [what, body] of invalid) {
  Deno.test(`chat to messages: ${what} is 502 and free`, async () => {
    using world = await paidWorld();
    world.upstream.once(() => new Response(typeof body === "string" ? body : JSON.stringify(body)));
    assert.equal((await chat(world)).status, 502);
    assert.equal((await usageOf(world)).length, 0);
  });
}

Deno.test("chat to messages: what Anthropic cannot do is 400 by name, reaches no upstream and is free", async () => {
  using world = await paidWorld();
  const { status, body } = await chat(world, { seed: 5 });
  assert.deepEqual([status, body.error.param, body.error.code], [
    400,
    "seed",
    "unsupported_parameter",
  ]);
  assert.equal((await chatStream(world, { n: 2 })).status, 400);
  assert.equal(world.upstream.calls.length, 0);
  assert.equal((await world.balance("ada")).available, "1");
});

Deno.test("chat to messages: an upstream without the endpoint of chat is asked for messages, after two refusals at once", async () => {
  using world = await paidWorld({ upstream: { url: upstream.url, apiKey: upstream.apiKey } });
  world.upstream.reply(({ url }) =>
    url.endsWith("/messages")
      ? Response.json(message())
      : Response.json({ error: { message: "Not Found" } }, { status: 404 })
  );
  for (let calls = 0; calls < 3; calls++) assert.equal((await chat(world)).status, 200);
  assert.deepEqual(world.upstream.calls.map(({ url }) => url.replace("https://own.test/v1", "")), [
    "/chat/completions",
    "/messages",
    "/chat/completions",
    "/messages",
    "/messages",
  ]);
});

const limits: [string, string, number][] = [
  [
    "a model's limit",
    "max_tokens: 1000 > 400, which is the maximum allowed number of output tokens for m",
    400,
  ],
  [
    "what the context leaves",
    "input length and `max_tokens` exceed context limit: 199700 + 1000 > 200000, decrease input " +
    "length or `max_tokens` and try again",
    300,
  ],
];
for (const [what, why, left] of limits) {
  Deno.test(`chat to messages: ${what} in Anthropic's words lowers the bound that a caller did not set`, async () => {
    using world = await paidWorld();
    const error = { type: "error", error: { type: "invalid_request_error", message: why } };
    world.upstream.once(() => Response.json(error, { status: 400 }));
    world.upstream.once(() => Response.json(message()));
    assert.equal((await chat(world)).status, 200);
    assert.deepEqual(world.upstream.calls.map(({ body }) => body.max_tokens), [1000, left]);
  });
}
