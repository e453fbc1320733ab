import assert from "node:assert/strict";
import { chat, chatBody, chatStream, completionsPath, usageOf } from "../support/chat.ts";
import {
  respond,
  respondStream,
  tokens,
  upstreamEvents,
  upstreamResponse,
} from "../support/responses.ts";
import { eventStream } from "../support/responses.ts";
import { send, sendStream } from "../support/messages.ts";
import { chunk, completion, readEvents, sse, usage, usageChunk } from "../support/upstream.ts";
import { verify } from "../support/verify.ts";
import { operate } from "../support/webhooks.ts";
import { createWorld, testPricing, type World } from "../support/world.ts";

const cache = { enabled: true, maxAgeSeconds: 3600, costFactor: "0.1" };

async function cachingWorld(settings: Record<string, unknown> = {}): Promise<World> {
  const world = await createWorld({ project: { responseCache: { ...cache, ...settings } } });
  for (const user of ["ada", "bob"]) await world.deposit(user, "1");
  return world;
}

const cacheOf = ({ headers }: Response) => headers.get("x-service-cache");
const hello = () => sse([chunk({ content: "Hello there" }), chunk({}, "stop"), usageChunk()]);

Deno.test("cache: off by default", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  for (const _ of [1, 2]) assert.equal(cacheOf((await chat(world)).response), null);
  assert.equal(world.upstream.calls.length, 2);
});

Deno.test("cache: a repeated request is answered at a part of its price, and asks nobody", async () => {
  using world = await cachingWorld();
  const first = await chat(world);
  const second = await chat(world);
  assert.deepEqual([cacheOf(first.response), cacheOf(second.response)], ["miss", "hit"]);
  assert.deepEqual(second.body.choices, first.body.choices);
  assert.equal(second.body.usage.prompt_tokens, 10);
  assert.equal(second.body.usage.cost_exact, "0.000002");
  assert.equal(world.upstream.calls.length, 1);
  const [hit, miss] = await usageOf(world);
  assert.deepEqual([hit?.delta, miss?.delta], ["-0.000002", "-0.00002"]);
  assert.deepEqual([hit?.usage.cached, hit?.usage.price.costFactor], [true, "0.1"]);
  assert.equal((await world.balance("ada")).held, "0");
  assert.deepEqual((await verify(world)).faults, []);
});

for (const [before, after] of [[true, true], [true, false], [false, true]] as const) {
  const name = (stream: boolean) => stream ? "streamed" : "whole";
  Deno.test(`cache: a ${name(before)} response is kept for a ${name(after)} one`, async () => {
    using world = await cachingWorld();
    world.upstream.reply(({ body }) => body.stream ? hello() : completion());
    const ask = async (stream: boolean) => {
      if (!stream) {
        const { body, response } = await chat(world);
        return [cacheOf(response), body.choices[0].message.content];
      }
      const response = await chatStream(world, { stream_options: { include_usage: true } });
      const events = await readEvents(response);
      const text = events.map(({ choices }) => choices?.[0]?.delta?.content ?? "").join("");
      return [cacheOf(response), text];
    };
    assert.deepEqual(await ask(before), ["miss", "Hello there"]);
    assert.deepEqual(await ask(after), ["hit", "Hello there"]);
    assert.equal(world.upstream.calls.length, 1);
    const [hit] = await usageOf(world);
    assert.equal(hit?.delta, "-0.000002");
  });
}

Deno.test("cache: responses and messages are kept too, whole and streamed", async () => {
  using world = await cachingWorld();
  world.upstream.reply(({ url, body }) =>
    url.endsWith("/messages")
      ? Response.json({
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "test-model",
        content: [{ type: "text", text: "Hello there" }],
        stop_reason: "end_turn",
        stop_sequence: null,
        usage: { input_tokens: 10, output_tokens: 5 },
      })
      : body.stream
      ? eventStream(upstreamEvents())
      : Response.json(upstreamResponse({ usage: tokens(10, 5) }))
  );
  assert.equal(cacheOf((await respond(world)).response), "miss");
  const streamed = await respondStream(world);
  assert.match(await streamed.text(), /response.completed/);
  assert.equal(cacheOf(streamed), "hit");
  const model = "test-model";
  assert.equal(cacheOf((await send(world, { model })).response), "miss");
  const message = await sendStream(world, { model });
  assert.match(await message.text(), /Hello there[^]*message_stop/);
  assert.equal(cacheOf(message), "hit");
  assert.equal(world.upstream.calls.length, 2);
});

Deno.test("cache: with the factor 0 a hit is free, and is still an entry", async () => {
  using world = await cachingWorld({ costFactor: "0" });
  for (const _ of [1, 2]) await chat(world);
  const [hit] = await usageOf(world);
  assert.deepEqual([hit?.delta, hit?.usage.cached], ["0", true]);
});

Deno.test("cache: the price of a hit is rounded up once, in the smallest unit", async () => {
  using world = await cachingWorld({ costFactor: "0.333333333" });
  for (const _ of [1, 2]) await chat(world);
  const [hit] = await usageOf(world);
  assert.equal(hit?.delta, "-0.000006667");
});

for (
  const [what, fields, headers = {}] of [
    ["another model", { model: "other" }],
    ["another message", { messages: [{ role: "user", content: "Ho" }] }],
    ["another bound", { max_tokens: 7 }],
    ["another seed", { seed: 7 }],
    ["another user", { user: "bob" }],
    ["no-cache", {}, { "cache-control": "no-cache" }],
  ] as const
) {
  Deno.test(`cache: a request with ${what} is none that was answered`, async () => {
    using world = await createWorld({
      project: {
        responseCache: cache,
        pricing: { models: { ...testPricing.models, "*": { input: "1", output: "2" } } },
      },
    });
    for (const user of ["ada", "bob"]) await world.deposit(user, "1");
    await chat(world);
    const { response } = await chat(world, fields, { headers });
    assert.equal(cacheOf(response), "miss");
    assert.equal(world.upstream.calls.length, 2);
  });
}

Deno.test("cache: what does not change a response is no difference, such as order and spaces", async () => {
  using world = await cachingWorld();
  await chat(world, { temperature: 0, seed: 1, metadata: { a: "b" } });
  const { messages, model, user } = chatBody();
  const raw = JSON.stringify({ seed: 1, user, messages, temperature: 0, model }, null, 2);
  const { response } = await world.json(completionsPath, { raw, method: "POST" });
  assert.equal(cacheOf(response), "hit");
});

Deno.test("cache: with the scope project, users share responses", async () => {
  using world = await cachingWorld({ scope: "project" });
  await chat(world);
  const { response } = await chat(world, { user: "bob" });
  assert.equal(cacheOf(response), "hit");
  assert.equal((await usageOf(world, "bob")).length, 1);
});

const tool = { type: "function", function: { name: "f", parameters: { type: "object" } } };
for (
  const [what, fields, headers = {}] of [
    ["tools", { tools: [tool] }],
    ["tools, whatever it asks", { tools: [tool] }, { "x-service-cache": "on" }],
    ["a high temperature", { temperature: 0.9 }],
    ["the header off", {}, { "x-service-cache": "off" }],
    ["no-store", {}, { "cache-control": "no-store" }],
  ] as const
) {
  Deno.test(`cache: a request with ${what} is none for it`, async () => {
    using world = await cachingWorld();
    for (const _ of [1, 2]) {
      assert.equal(cacheOf((await chat(world, fields, { headers })).response), null);
    }
    assert.equal(world.upstream.calls.length, 2);
  });
}

Deno.test("cache: a request may ask for it in spite of its temperature", async () => {
  using world = await cachingWorld();
  const options = { headers: { "x-service-cache": "on" } };
  await chat(world, { temperature: 1.5 }, options);
  assert.equal(cacheOf((await chat(world, { temperature: 1.5 }, options)).response), "hit");
});

Deno.test("cache: settings take effect at once, and responses get old", async () => {
  using world = await cachingWorld();
  await chat(world);
  await world.clock.advance(3_599_000);
  assert.equal(cacheOf((await chat(world)).response), "hit");
  await world.clock.advance(2_000);
  assert.equal(cacheOf((await chat(world)).response), "miss");
  const change = (responseCache: Record<string, unknown>) =>
    operate(world, "", { method: "PATCH", body: { responseCache } });
  assert.equal((await change({ costFactor: "0.5" })).status, 200);
  await chat(world);
  assert.equal((await usageOf(world))[0]?.delta, "-0.00001");
  await change({ enabled: false });
  assert.equal(cacheOf((await chat(world)).response), null);
});

Deno.test("cache: who has no money gets the paywall, and no kept response", async () => {
  using world = await cachingWorld({ scope: "project" });
  await chat(world);
  const { response, body } = await chat(world, { user: "eve" });
  assert.equal(response.headers.get("x-service-paywall"), "insufficient_funds");
  assert.doesNotMatch(JSON.stringify(body), /Hello there/);
  await world.deposit("eve", "0.000002");
  assert.equal(cacheOf((await chat(world, { user: "eve" })).response), "hit");
});

Deno.test("cache: no error, no cut and no response without reported usage is kept", async () => {
  using world = await cachingWorld();
  const answers = [
    () => new Response("", { status: 500 }),
    () => completion({ usage: undefined }),
    () => completion({ usage: usage(10, 1_000) }),
    () => completion(),
  ];
  for (const answer of answers) {
    world.upstream.once(answer);
    assert.notEqual(cacheOf((await chat(world)).response), "hit");
  }
  assert.equal(cacheOf((await chat(world)).response), "hit");
});

Deno.test("cache: an idempotent request is replayed, not looked up again", async () => {
  using world = await cachingWorld();
  const options = { headers: { "idempotency-key": "k" } };
  await chat(world, {}, options);
  const { response } = await chat(world, {}, options);
  assert.equal(response.headers.get("idempotent-replayed"), "true");
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("cache: what is kept is removed once it is old", async () => {
  using world = await cachingWorld();
  await chat(world);
  const rows = async () =>
    (await world.deps.kv.list({ prefix: ["cached_response"], limit: 9 })).length;
  assert.equal(await rows(), 1);
  await world.clock.advance(3_601_000);
  await world.app.sweep();
  assert.equal(await rows(), 0);
});
