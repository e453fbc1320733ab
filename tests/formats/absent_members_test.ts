import assert from "node:assert/strict";
import { type Body, createWorld, testPricing } from "../support/world.ts";

const price = Object.values(testPricing.models)[0];
const pricing = { models: { "*": { ...price, images: { "*": "0.1" }, characters: "15" } } };
const turns = [{ role: "user", content: "Hi" }];
const nulls = (...names: string[]) => Object.fromEntries(names.map((name) => [name, null]));

/** Bodies of every endpoint with members that clients send as null. */
const endpoints: [string, Body, Body][] = [
  ["/v1/chat/completions", { messages: turns }, nulls("stop", "tools", "response_format", "n")],
  ["/v1/responses", { input: "Hi" }, nulls("truncation", "prompt", "conversation", "text")],
  ["/v1/responses/input_tokens", { input: "Hi" }, nulls("tools", "personality", "conversation")],
  ["/v1/messages", { messages: turns, max_tokens: 9 }, nulls("system", "thread", "fallbacks")],
  ["/v1/messages/count_tokens", { messages: turns }, nulls("system", "thread", "tools")],
  ["/v1/completions", { prompt: "Hi" }, nulls("suffix", "stop", "best_of", "echo")],
  ["/v1/embeddings", { input: "Hi" }, nulls("dimensions", "encoding_format")],
  ["/v1/moderations", { input: "Hi" }, nulls("metadata")],
  ["/v1/images/generations", { prompt: "Hi" }, nulls("n", "size", "quality", "stream")],
  ["/v1/audio/speech", { input: "Hi", voice: "a" }, nulls("speed", "instructions")],
];

for (const [path, body, absent] of endpoints) {
  Deno.test(`${path}: members that are null, and empty users, are as absent; so is a query`, async () => {
    using world = await createWorld({ project: { pricing } });
    await world.deposit("ada", "5");
    const empty = { user: "", safety_identifier: "", unheard_of: null, metadata: null };
    const sent = { model: "test-model", ...body, ...absent, ...empty };
    world.upstream.reply(() => Response.json({ error: { message: "seen" } }, { status: 400 }));
    const options = { body: sent, headers: { "x-service-user": "ada" } };
    const { body: seen } = await world.json(`${path}?beta=true&api-version=1`, options);
    assert.equal(seen.error?.message, "seen", JSON.stringify(seen));
    const [call] = world.upstream.calls;
    assert.equal(call?.url, `https://upstream.test${path}`);
    const { model: _, ...received } = call?.body;
    for (const name of Object.keys(absent)) assert.equal(received[name] ?? null, null, name);
    for (const name of ["user", "safety_identifier"]) assert.ok(!(name in received), name);
    for (const [name, value] of Object.entries(body)) {
      if (name !== "max_tokens") assert.deepEqual(received[name], value);
    }
  });
}

Deno.test("messages: an empty user_id does not go upstream, other metadata does", async () => {
  using world = await createWorld({ project: { pricing } });
  await world.deposit("ada", "5");
  world.upstream.reply(() => Response.json({ error: { message: "seen" } }, { status: 400 }));
  for (const id of ["", "abc"]) {
    const metadata = { user_id: id };
    const body = { model: "test-model", max_tokens: 9, messages: turns, metadata };
    await world.json("/v1/messages", { body, headers: { "x-service-user": "ada" } });
  }
  const seen = world.upstream.calls.map(({ body }) => body.metadata);
  assert.deepEqual(seen, [{}, { user_id: "abc" }]);
});

Deno.test("null in messages, parts and tools is as absent", async () => {
  using world = await createWorld({ project: { pricing } });
  await world.deposit("ada", "5");
  const call = { ...nulls("tool_calls", "name", "weight"), role: "user", content: "Hi" };
  const body = { model: "test-model", user: "ada", messages: [call] };
  const { status, body: seen } = await world.json("/v1/chat/completions", { body });
  assert.equal(status, 200, JSON.stringify(seen));
});

for (const formats of [["responses"], ["chat"], ["messages"]]) {
  Deno.test(`truncation: "auto" is taken by an upstream of ${formats}`, async () => {
    const upstream = { url: "https://own.test/v1", formats };
    using world = await createWorld({ project: { pricing, upstream } });
    await world.deposit("ada", "5");
    world.upstream.reply(() => Response.json({ error: { message: "seen" } }, { status: 400 }));
    const body = { model: "test-model", user: "ada", input: "Hi", truncation: "auto" };
    const { body: seen } = await world.json("/v1/responses", { body });
    assert.equal(seen.error?.message, "seen", JSON.stringify(seen));
    const isNative = formats[0] === "responses";
    assert.equal(world.upstream.calls[0]?.body.truncation, isNative ? "auto" : undefined);
  });
}
