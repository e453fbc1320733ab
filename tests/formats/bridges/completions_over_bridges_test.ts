import assert from "node:assert/strict";
import { completionsToChat } from "../../../src/formats/bridges/completions_to_chat.ts";
import { completionsToMessages } from "../../../src/formats/bridges/completions_to_messages.ts";
import { usageOf } from "../../support/chat.ts";
import { completion, helloStream, sseBytes } from "../../support/upstream.ts";
import { type Body, createWorld, type World } from "../../support/world.ts";
import { assertRefused, eventsOf, framesOf } from "./support.ts";

const models = { "test-model": { input: "1", output: "2" } };
const message = {
  id: "msg_up",
  type: "message",
  role: "assistant",
  model: "test-model",
  content: [{ type: "text", text: "Hello there" }],
  stop_reason: "end_turn",
  usage: { input_tokens: 10, output_tokens: 5 },
};

/** A world whose upstream serves this format, and not legacy completions. */
async function worldOf(format: "chat" | "messages", formats?: string[]): Promise<World> {
  const upstream = formats && { url: "https://upstream.test/v1", apiKey: "sk-up", formats };
  const world = await createWorld({
    project: { pricing: { models }, ...(upstream ? { upstream } : {}) },
  });
  await world.deposit("ada", "1");
  const path = format === "chat" ? "/chat/completions" : "/messages";
  world.upstream.reply(({ url, body: { stream } }) => {
    if (!url.endsWith(path)) {
      return Response.json({ error: { message: "Not Found" } }, { status: 404 });
    }
    if (format === "chat") return stream ? helloStream() : completion();
    return stream
      ? sseBytes([new TextEncoder().encode(framesOf(eventsOf(message)))])
      : Response.json(message);
  });
  return world;
}

const ask = (world: World, more: Body = {}) =>
  world.call("/v1/completions", {
    body: { model: "test-model", prompt: "Hi", user: "ada", max_tokens: 50, ...more },
    keepClock: true,
  });

const upstreams: ["chat" | "messages", string[]?][] = [
  ["chat"],
  ["chat", ["chat"]],
  ["messages", ["messages"]],
];
for (const [format, formats] of upstreams) {
  const what = `over an upstream ${formats ? "set to speak" : "that only speaks"} ${format}`;
  Deno.test(`completions ${what}: whole and streamed, at its usage`, async () => {
    using world = await worldOf(format, formats);
    const response = await ask(world, { stop: "END", temperature: 0.5 });
    assert.equal(response.status, 200);
    const { object, choices, usage } = await response.json();
    assert.equal(object, "text_completion");
    const choice = { text: "Hello there", index: 0, logprobs: null, finish_reason: "stop" };
    assert.deepEqual(choices, [choice]);
    assert.deepEqual([usage.prompt_tokens, usage.completion_tokens], [10, 5]);
    const sent = world.upstream.calls.at(-1)?.body ?? {};
    assert.equal(sent.messages.length, 1);
    assert.deepEqual([sent.max_tokens, sent.temperature], [50, 0.5]);
    const text = await (await ask(world, { stream: true })).text();
    const chunks = text.split("\n").filter((line) => line.startsWith("data: {"))
      .map((line): Body => JSON.parse(line.slice("data: ".length)));
    const written = chunks.flatMap(({ choices }) => choices).map(({ text }) => text).join("");
    assert.equal(written, "Hello there");
    assert.ok(chunks.every(({ object }) => object === "text_completion"));
    assert.ok(text.includes('"finish_reason":"stop"') && text.trim().endsWith("[DONE]"));
    const entries = await usageOf(world);
    assert.deepEqual(entries.map(({ usage: { source } }) => source), ["provider", "provider"]);
  });
}

const refused: [string, Body][] = [
  ["prompt", { prompt: ["a", "b"] }],
  ["prompt", { prompt: [1, 2] }],
  ["suffix", { suffix: "end" }],
  ["echo", { echo: true }],
  ["best_of", { best_of: 2 }],
  ["logprobs", { logprobs: 2 }],
];
for (const [param, body] of refused) {
  Deno.test(`completions over a bridge: ${JSON.stringify(body)} is 400 by name`, () => {
    const sent = { model: "m", prompt: "Hi", ...body };
    assertRefused(completionsToChat, sent, param);
    assertRefused(completionsToMessages, sent, param);
  });
}
Deno.test("completions over messages: what chat could carry, and messages cannot, is 400 by name", () => {
  assertRefused(completionsToMessages, { model: "m", prompt: "Hi", n: 2 }, "n");
  assertRefused(completionsToMessages, { model: "m", prompt: " " }, "prompt");
});
