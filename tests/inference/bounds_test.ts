import assert from "node:assert/strict";
import { chat, chatStream, usageOf } from "../support/chat.ts";
import {
  chunk,
  completion,
  readEvents,
  sse,
  sseBytes,
  usage,
  usageChunk,
} from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

async function paidWorld(env: Record<string, string> = {}): Promise<World> {
  const world = await createWorld({ env });
  await world.deposit("ada", "1");
  return world;
}

/** A body in pieces of 64 KiB, as a socket gives it. */
function inPieces(text: string, type: string): Response {
  const bytes = new TextEncoder().encode(text);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 65_536) parts.push(bytes.subarray(at, at + 65_536));
  const { body } = sseBytes(parts);
  return new Response(body, { headers: { "content-type": type } });
}

const picture = (chars: number) => ({
  images: [{ image_url: { url: `data:image/png;base64,${"A".repeat(chars)}` } }],
});

for (const megabytes of [12, 30]) {
  Deno.test(`bounds: an event of ${megabytes} MB passes, and is charged`, async () => {
    using world = await paidWorld();
    const events = [
      chunk(picture(megabytes * 1_000_000)),
      chunk({}, "stop"),
      usageChunk(usage(10, 5)),
    ];
    const text = [...events, "[DONE]"].map((event) =>
      `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`
    ).join("");
    world.upstream.once(() => inPieces(text, "text/event-stream"));
    const received = await (await chatStream(world)).text();
    assert.ok(received.length > megabytes * 1_000_000);
    assert.ok(received.endsWith("data: [DONE]\n\n"));
    assert.equal((await usageOf(world))[0]?.amount, "0.00002");
  });
}

Deno.test("bounds: an event beyond the setting ends the stream with an error, and is charged what was held", async () => {
  using world = await paidWorld({ UPSTREAM_EVENT_BYTES_MAX: "100000" });
  world.upstream.once(() => sse([chunk({ content: "Hi" }), chunk(picture(200_000))]));
  const events = await readEvents(await chatStream(world, { max_tokens: 100 }));
  assert.equal(events.at(-1)?.error.code, "response_too_large");
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.usage.outputTokens, entry?.usage.source], [100, "estimated"]);
});

const large = (more: Record<string, unknown>) => {
  const logprobs = { content: [{ token: "x".repeat(300_000) }] };
  const message = { role: "assistant", content: 'said "usage":{"prompt_tokens":1}' };
  return { choices: [{ index: 0, message, logprobs, finish_reason: "stop" }], ...more };
};

const tooLarge: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ["with usage at its end", { ...large({}), usage: usage(40, 30) }, {
    uncachedInputTokens: 40,
    outputTokens: 30,
    source: "provider",
  }],
  ["with usage at its start", { usage: usage(40, 30), ...large({}) }, {
    uncachedInputTokens: 40,
    outputTokens: 30,
    source: "provider",
  }],
  ["without usage", large({}), { uncachedInputTokens: 8, outputTokens: 100, source: "estimated" }],
];
for (const [what, body, counted] of tooLarge) {
  Deno.test(`bounds: a whole response ${what} that is too large for us is charged once, and not repeated`, async () => {
    using world = await paidWorld({ UPSTREAM_BODY_BYTES_MAX: "100000" });
    world.upstream.once(() => inPieces(JSON.stringify(body), "application/json"));
    const { status, body: { error }, response } = await chat(world, { max_tokens: 100 });
    assert.deepEqual([status, error.code], [502, "response_too_large"]);
    assert.equal(response.headers.get("x-should-retry"), "false");
    const entries = await usageOf(world);
    assert.equal(entries.length, 1);
    assert.equal(response.headers.get("x-service-activity-id"), entries[0]?.id);
    for (const [field, value] of Object.entries(counted)) {
      assert.equal(entries[0]?.usage[field], value, field);
    }
    assert.equal((await world.balance("ada")).held, "0");
  });
}

Deno.test("bounds: a response nested too deep is charged by its usage", async () => {
  using world = await paidWorld();
  const deep = "[".repeat(5_000) + "]".repeat(5_000);
  const text = JSON.stringify({ ...large({}), usage: usage(40, 30) }).replace(
    '"choices"',
    `"x":${deep},"choices"`,
  );
  world.upstream.once(() => inPieces(text, "application/json"));
  assert.equal((await chat(world)).status, 502);
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 30);
});

Deno.test("bounds: our deadline within a body charges what was held; before it, nothing", async () => {
  using world = await paidWorld({ UPSTREAM_TIMEOUT_MS: "60000" });
  for (const [start, entries] of [["  \n", 1], ["", 1]] as const) {
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        if (start !== "") controller.enqueue(new TextEncoder().encode(start));
      },
    });
    world.upstream.once(() =>
      new Response(body, { headers: { "content-type": "application/json" } })
    );
    const running = chat(world, { max_tokens: 100 });
    await world.until(() => world.upstream.calls.length > 0);
    await world.clock.advance(61_000);
    assert.equal((await running).status, 504);
    assert.equal((await usageOf(world)).length, entries);
  }
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 100);
});

const pieces = [
  chunk({ role: "assistant", content: "" }),
  chunk({ reasoning_content: "Well, " }),
  chunk({ reasoning_content: "yes." }),
  chunk({ content: "Hello" }),
  chunk({ content: " there" }),
  chunk({
    tool_calls: [{
      index: 0,
      id: "call_1",
      type: "function",
      function: { name: "f", arguments: '{"a"' },
    }],
  }),
  chunk({ tool_calls: [{ index: 0, function: { arguments: ":1}" } }] }),
  chunk({}, "tool_calls"),
  usageChunk(usage(10, 5)),
];

for (const declared of [true, false]) {
  Deno.test(`bounds: events for a caller who asked for no stream are one response${declared ? "" : ", also undeclared"}`, async () => {
    using world = await paidWorld();
    const text = await sse(pieces).text();
    const type = declared ? "text/event-stream" : "application/json";
    world.upstream.once(() => inPieces(text, type));
    const { status, body, response } = await chat(world);
    assert.equal(status, 200);
    assert.equal(body.object, "chat.completion");
    assert.deepEqual(body.choices[0].message, {
      refusal: null,
      role: "assistant",
      content: "Hello there",
      reasoning_content: "Well, yes.",
      tool_calls: [{
        id: "call_1",
        type: "function",
        function: { name: "f", arguments: '{"a":1}' },
      }],
    });
    assert.equal(body.choices[0].finish_reason, "tool_calls");
    assert.equal(body.usage.total_tokens, 15);
    assert.equal(response.headers.get("x-service-cost"), "0.00002");
  });
}

const firstErrors: [Record<string, unknown>, number][] = [
  [{ code: "rate_limit_exceeded", message: "slow down" }, 429],
  [{ code: 429, message: "slow down" }, 429],
  [{ type: "overloaded_error", message: "busy" }, 502],
  [{ code: "context_length_exceeded", message: "too long" }, 400],
  [{ code: 402, message: "the owner's credit" }, 502],
  [{ message: "no code" }, 502],
];
for (const [error, status] of firstErrors) {
  for (const before of ["", ": PROCESSING\n\n"]) {
    Deno.test(`bounds: a stream that begins with ${before ? "a comment and " : ""}${JSON.stringify(error)} is ${status}`, async () => {
      using world = await paidWorld();
      const text = `${before}data: ${JSON.stringify({ error })}\n\n`;
      world.upstream.once(() => inPieces(text, "text/event-stream"));
      const response = await chatStream(world);
      assert.equal(response.status, status);
      if (status === 429) assert.ok(response.headers.get("retry-after"));
      const body = await response.json();
      assert.equal(body.error.message.includes("owner"), false);
      assert.deepEqual(await usageOf(world), []);
      assert.equal((await world.balance("ada")).held, "0");
    });
  }
}

Deno.test("bounds: an error in a whole response is the status that it stands for", async () => {
  using world = await paidWorld();
  world.upstream.once(() => Response.json({ error: { code: 429, message: "slow down" } }));
  const { status, response } = await chat(world);
  assert.equal(status, 429);
  assert.ok(response.headers.get("retry-after"));
  world.upstream.once(() => completion());
  assert.equal((await chat(world)).status, 200);
});

Deno.test("bounds: usage that comes after the last event is charged", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1");
  for (const inOnePiece of [true, false]) {
    const frames = [
      chunk({ content: "Hi" }),
      chunk({}, "stop"),
      "[DONE]",
      usageChunk(usage(40, 30)),
    ]
      .map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
    const parts = inOnePiece ? [frames.join("")] : frames;
    world.upstream.once(() => sseBytes(parts.map((part) => new TextEncoder().encode(part))));
    assert.ok((await (await chatStream(world)).text()).endsWith("data: [DONE]\n\n"));
    const [entry] = await usageOf(world);
    assert.deepEqual([entry?.amount, entry?.usage.source], ["0.0001", "provider"]);
  }
});
