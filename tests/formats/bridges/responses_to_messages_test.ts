import assert from "node:assert/strict";
import { responsesToMessages } from "../../../src/formats/bridges/responses_to_messages.ts";
import { usageOf } from "../../support/chat.ts";
import { openAiClient } from "../../support/responses.ts";
import { sseBytes } from "../../support/upstream.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";
import { assertRefused, eventsOf, framesOf } from "./support.ts";

const price = { input: "1", output: "10", cachedInput: "0.1", cacheWrite: "2" };
const project = {
  pricing: { models: { "test-model": { ...price, maxOutputTokens: 1000 } } },
  upstream: { url: "https://own.test/v1", apiKey: "sk-ant", formats: ["messages"] },
};
const signed = { type: "thinking", thinking: "Hm.", signature: "sig" };
const message = (more: Body = {}): Body => ({
  id: "msg_up",
  type: "message",
  role: "assistant",
  model: "test-model",
  content: [
    signed,
    { type: "text", text: "Hello" },
    { type: "tool_use", id: "toolu_1", name: "f", input: { a: 1 } },
  ],
  stop_reason: "tool_use",
  usage: {
    input_tokens: 10,
    cache_read_input_tokens: 100,
    cache_creation_input_tokens: 30,
    output_tokens: 5,
  },
  ...more,
});
/** 10 × 1 + 100 × 0.1 + 30 × 2 + 5 × 10, for a million each. */
const cost = 0.00013;

function answer(world: World, body: Body = message()): void {
  world.upstream.reply(({ body: { stream } }) =>
    stream ? sseBytes([new TextEncoder().encode(framesOf(eventsOf(body)))]) : Response.json(body)
  );
}

async function paidWorld(balance = "1"): Promise<World> {
  const world = await createWorld({ project });
  if (balance !== "0") await world.deposit("ada", balance);
  answer(world);
  return world;
}

const ask = (world: World, more: Body = {}) =>
  world.call("/v1/responses", {
    body: { model: "test-model", input: "Hi", user: "ada", ...more },
    keepClock: true,
  });
const tools = [{ type: "function", name: "f", parameters: { type: "object" }, strict: false }];

for (const stream of [false, true]) {
  const how = stream ? "streamed" : "whole";
  Deno.test(`responses to messages: an answer with reasoning and a call, ${how}, and the turn after it`, async () => {
    using world = await paidWorld();
    const client = openAiClient(world);
    const body = {
      ...{ model: "test-model", instructions: "Be kind", tools, user: "ada", store: false },
      max_output_tokens: 50,
      // deno-lint-ignore no-explicit-any -- the client's types of tools are stricter than needed
    } as any;
    const first = { ...body, input: "Hi" };
    const response = stream
      ? await client.responses.stream(first).finalResponse()
      : await client.responses.create(first);
    const { output, status, usage } = response;
    assert.deepEqual(output.map(({ type }: Body) => type), [
      "reasoning",
      "message",
      "function_call",
    ]);
    assert.deepEqual([status, response.output_text], ["completed", "Hello"]);
    const { input_tokens, output_tokens, total_tokens, cost: charged } = usage as Body;
    assert.deepEqual([input_tokens, output_tokens, total_tokens, charged], [140, 5, 145, cost]);
    const [sent] = world.upstream.calls;
    assert.equal(sent?.url, "https://own.test/v1/messages");
    assert.equal(sent?.headers.get("x-api-key"), "sk-ant");
    assert.deepEqual(sent?.body, {
      model: "test-model",
      max_tokens: 50,
      system: [{ type: "text", text: "Be kind" }],
      messages: [{ role: "user", content: [{ type: "text", text: "Hi" }] }],
      ...(stream ? { stream } : {}),
      tools: [{ name: "f", input_schema: { type: "object" } }],
    });
    const result = { type: "function_call_output", call_id: "toolu_1", output: "ok" };
    await client.responses.create({
      ...body,
      input: [{ role: "user", content: "Hi" }, ...output, result],
    });
    const { messages } = world.upstream.calls[1]?.body ?? {};
    assert.deepEqual(messages?.slice(1), [
      { role: "assistant", content: message().content },
      {
        role: "user",
        content: [{
          type: "tool_result",
          tool_use_id: "toolu_1",
          content: [{ type: "text", text: "ok" }],
        }],
      },
    ]);
    const [entry] = await usageOf(world);
    assert.equal(entry?.usage.source, "provider");
  });

  Deno.test(`responses to messages: an answer that is cut by length, ${how}, is incomplete`, async () => {
    using world = await paidWorld();
    answer(world, message({ content: [{ type: "text", text: "Hel" }], stop_reason: "max_tokens" }));
    const response = await ask(world, { stream });
    const text = await response.text();
    const last = stream
      ? JSON.parse(text.trim().split("\n").at(-1)?.slice("data: ".length) ?? "").response
      : JSON.parse(text);
    assert.deepEqual([last.status, last.incomplete_details], ["incomplete", {
      reason: "max_output_tokens",
    }]);
  });

  Deno.test(`responses to messages: Anthropic's error is the response's own, ${how}`, async () => {
    using world = await paidWorld();
    world.upstream.reply(() =>
      Response.json({ type: "error", error: { type: "invalid_request_error", message: "Bad." } }, {
        status: 400,
      })
    );
    const response = await ask(world, { stream });
    assert.equal(response.status, 400);
    assert.equal((await response.json()).error.message, "Bad.");
    assert.equal((await usageOf(world)).length, 0);
  });

  Deno.test(`responses to messages: a refused user gets the link, ${how}`, async () => {
    using world = await paidWorld("0");
    const response = await ask(world, { stream });
    assert.equal(response.status, 200);
    assert.ok((await response.text()).includes("https://"));
    assert.equal(world.upstream.calls.length, 0);
  });
}

Deno.test("responses to messages: a response can be continued by its id", async () => {
  using world = await paidWorld();
  answer(world, message({ content: [{ type: "text", text: "Hello" }], stop_reason: "end_turn" }));
  const { id } = await (await ask(world)).json();
  assert.equal((await ask(world, { previous_response_id: id, input: "More" })).status, 200);
  const { messages } = world.upstream.calls[1]?.body ?? {};
  assert.deepEqual(messages?.map(({ role }: Body) => role), ["user", "assistant", "user"]);
});

const refused: [string, Body][] = [
  ["reasoning.mode", { reasoning: { mode: "deep" } }],
  ["text.verbosity", { text: { verbosity: "low" } }],
  ["text.format", { text: { format: { type: "json_schema", name: "x" } } }],
  ["include", { include: ["message.output_text.logprobs"] }],
  ["seed", { seed: 1 }],
  ["temperature", { temperature: 1.5 }],
  ["service_tier", { service_tier: "flex" }],
  ["input", { input: [{ role: "user", content: [{ type: "input_audio", input_audio: {} }] }] }],
  ["tools.0.type", { tools: [{ type: "web_search" }] }],
  ["truncation", { truncation: "last" }],
];
for (const [param, body] of refused) {
  Deno.test(`responses to messages: ${JSON.stringify(body)} is 400 by the caller's name`, () =>
    assertRefused(responsesToMessages, { model: "m", input: "Hi", ...body }, param));
}
