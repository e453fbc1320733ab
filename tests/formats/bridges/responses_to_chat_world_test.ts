import assert from "node:assert/strict";
import { usageOf } from "../../support/chat.ts";
import { createWorld, type World } from "../../support/world.ts";
import {
  chunk,
  completion,
  helloStream,
  type ReceivedCall,
  sse,
  usage,
  usageChunk,
} from "../../support/upstream.ts";

const project = { pricing: { models: { "test-model": { input: "1", output: "2" } } } };

/** An upstream that only speaks chat completions. */
const chatOnly = (answer: (call: ReceivedCall) => Response) => (call: ReceivedCall) =>
  call.url.endsWith("/responses")
    ? Response.json({ error: { message: "Not Found" } }, { status: 404 })
    : answer(call);

async function chatWorld(answer: (call: ReceivedCall) => Response): Promise<World> {
  const world = await createWorld({ project });
  await world.deposit("ada", "1");
  world.upstream.reply(chatOnly(answer));
  return world;
}

const ask = (world: World, more: Record<string, unknown> = {}) =>
  world.call("/v1/responses", {
    body: { model: "test-model", input: "Hi", user: "ada", ...more },
    keepClock: true,
  });

const typesOf = (text: string) => [...text.matchAll(/^event: (.*)$/gm)].map(([, type]) => type);

Deno.test("responses to chat: a chat-only upstream answers, is charged exactly and remembered", async () => {
  using world = await chatWorld(({ body }) => body.stream ? helloStream() : completion());
  const response = await ask(world, { instructions: "Be kind", max_output_tokens: 50 });
  assert.equal(response.status, 200);
  const { status, store, output } = await response.json();
  assert.deepEqual([status, store, output[0].content[0].text], [
    "completed",
    true,
    "Hello there",
  ]);
  const [refused, asked] = world.upstream.calls;
  assert.equal(refused?.url, "https://upstream.test/v1/responses");
  assert.equal(asked?.url, "https://upstream.test/v1/chat/completions");
  assert.deepEqual(asked?.body.messages, [
    { role: "system", content: "Be kind" },
    { role: "user", content: "Hi" },
  ]);
  assert.equal(asked?.body.max_tokens, 50);
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.usage.uncachedInputTokens, entry?.usage.source], [10, "provider"]);
  const streamed = await (await ask(world, { stream: true })).text();
  assert.equal(typesOf(streamed).at(-1), "response.completed");
  assert.equal(world.upstream.calls.length, 4);
  await (await ask(world, { stream: true })).text();
  assert.equal(world.upstream.calls.length, 5, "only the first two calls ask for responses");
});

const ends: [
  string,
  () => Response,
  { status: number; last: string | undefined; input: number },
][] = [
  ["without usage", () => sse([chunk({ content: "Hello" }), chunk({}, "stop")]), {
    status: 200,
    last: "response.completed",
    input: 8,
  }],
  [
    "with usage after its end",
    () =>
      sse([chunk({ content: "Hello" }, "stop"), "[DONE]", usageChunk(usage(77, 7))], {
        done: false,
      }),
    { status: 200, last: "response.completed", input: 77 },
  ],
  ["broken off", () => sse([chunk({ content: "Hello" })], { done: false }), {
    status: 200,
    last: "error",
    input: 8,
  }],
  ["by an error", () => sse([chunk({ content: "Hello" }), { error: { message: "no" } }]), {
    status: 200,
    last: "error",
    input: 8,
  }],
  ["by an error at once", () => sse([{ error: { message: "no", code: "rate_limit_exceeded" } }]), {
    status: 429,
    last: undefined,
    input: 0,
  }],
  ["empty", () => sse([]), { status: 502, last: undefined, input: 0 }],
  ["as JSON", () => completion(), { status: 200, last: "response.completed", input: 10 }],
];
for (const [what, answer, expected] of ends) {
  Deno.test(`responses to chat: a stream that ends ${what} is charged for what was delivered`, async () => {
    using world = await chatWorld(answer);
    const response = await ask(world, { stream: true });
    const last = typesOf(await response.text()).at(-1);
    assert.deepEqual([response.status, last], [expected.status, expected.last]);
    const [entry] = await usageOf(world);
    const { source, uncachedInputTokens: input = 0 } = entry?.usage ?? {};
    if (source === "estimated") assert.ok(input > 0);
    else assert.equal(input, expected.input);
    assert.equal(entry === undefined, expected.input === 0);
  });
}

Deno.test("responses to chat: what chat cannot carry is 400, streamed or not, and free", async () => {
  using world = await chatWorld(() => completion());
  for (const more of [{ truncation: "last" }, { truncation: "last", stream: true }]) {
    const response = await ask(world, more);
    assert.equal(response.status, 400);
    assert.equal((await response.json()).error.param, "truncation");
  }
  assert.equal((await usageOf(world)).length, 0);
});
