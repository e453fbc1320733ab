import assert from "node:assert/strict";
import { chat, chatBody, chatStream, completionsPath, usageOf } from "../support/chat.ts";
import { assertGrowth } from "../support/growth.ts";
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

for (const reported of [true, false]) {
  Deno.test(`bounds: an event beyond the setting passes as it is, ${reported ? "with its usage" : "and is charged what was held"}`, async () => {
    using world = await paidWorld({ UPSTREAM_EVENT_BYTES_MAX: "100000" });
    const large = { ...chunk(picture(200_000)), model: "test-model" };
    const frames = [
      chunk({ content: "Hi" }),
      reported ? { ...large, x_groq: { usage: usage(40, 30) } } : large,
      chunk({ content: " there" }, "stop"),
      "[DONE]",
    ].map((event) => `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`);
    world.upstream.once(() => inPieces(frames.join(""), "text/event-stream"));
    const events = await readEvents(await chatStream(world, { max_tokens: 100 }));
    assert.deepEqual(events[1].choices, large.choices);
    assert.equal(events[2].choices[0].delta.content, " there");
    assert.equal(events.at(-1), "[DONE]");
    const [entry] = await usageOf(world);
    const { outputTokens = 0, imageOutputTokens = 0, source } = entry?.usage ?? {};
    assert.deepEqual(
      [outputTokens + imageOutputTokens, source],
      reported ? [30, "provider"] : [100, "estimated"],
    );
  });
}

Deno.test("bounds: an event of many lines beyond the setting ends the stream, and is charged what was held", async () => {
  using world = await paidWorld({ UPSTREAM_EVENT_BYTES_MAX: "100000" });
  const text = `data: ${JSON.stringify(chunk({ content: "Hi" }))}\n\n` +
    "data: xxxx\n".repeat(20_000);
  world.upstream.once(() => inPieces(text, "text/event-stream"));
  const events = await readEvents(await chatStream(world, { max_tokens: 100 }));
  assert.equal(events.at(-1)?.error.code, "response_too_large");
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 100);
});

Deno.test("bounds: many small events in one piece are not one large event", async () => {
  using world = await paidWorld({ UPSTREAM_EVENT_BYTES_MAX: "2000" });
  const frames = [...Array(500).fill(chunk({ content: "word " })), chunk({}, "stop"), usageChunk()];
  const text = frames.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
  world.upstream.once(() => sseBytes([new TextEncoder().encode(`${text}data: [DONE]\n\n`)]));
  assert.equal((await readEvents(await chatStream(world))).at(-1), "[DONE]");
});

const large = (more: Record<string, unknown>) => {
  const logprobs = { content: [{ token: "x".repeat(300_000), usage: usage(9, 9) }] };
  const message = { role: "assistant", content: 'said "usage":{"prompt_tokens":1} and \\"' };
  return { choices: [{ index: 0, message, logprobs, finish_reason: "stop", ...more }] };
};

const reportedUsage = { uncachedInputTokens: 40, outputTokens: 30, source: "provider" };
const deep = JSON.parse("[".repeat(5_000) + "]".repeat(5_000));
const passedWhole: [string, Record<string, unknown>, Record<string, unknown>][] = [
  ["with usage at its end", { ...large({}), usage: usage(40, 30) }, reportedUsage],
  ["with usage at its start", { usage: usage(40, 30), ...large({}) }, reportedUsage],
  ["with usage in a choice", large({ usage: usage(40, 30) }), reportedUsage],
  [
    "with usage in x_groq",
    { ...large({}), x_groq: { id: 1, usage: usage(40, 30) } },
    reportedUsage,
  ],
  ["with Google's usage", {
    ...large({}),
    usageMetadata: { promptTokenCount: 40, candidatesTokenCount: 30, totalTokenCount: 70 },
  }, reportedUsage],
  ["without usage", large({}), { uncachedInputTokens: 8, outputTokens: 100, source: "estimated" }],
  ["that is nested too deep", { choices: [], x: deep, usage: usage(40, 30) }, reportedUsage],
];
for (const [what, body, counted] of passedWhole) {
  for (const more of [{}, { usage: { prompt_tokens: 5 } }]) {
    const inText = Object.keys(more).length > 0;
    Deno.test(`bounds: a large response ${what}${inText ? " and some in its metadata" : ""} passes as it is, and is charged once`, async () => {
      using world = await paidWorld({ UPSTREAM_BODY_BYTES_MAX: "100000" });
      const text = JSON.stringify({ ...body, metadata: { note: 'a "quote" \\', ...more } });
      world.upstream.once(() => inPieces(text, "application/json"));
      const headers = { "idempotency-key": "k1" };
      const response = await world.call(completionsPath, {
        body: chatBody({ max_tokens: 100 }),
        headers,
      });
      assert.equal(response.status, 200);
      assert.equal(response.headers.get("x-service-unparsed"), "true");
      // What has arrived whole is small enough to be stored.
      const stored = body.x === deep ? null : "false";
      assert.equal(response.headers.get("idempotency-stored"), stored);
      assert.equal(await response.text(), text);
      const entries = await usageOf(world);
      assert.equal(entries.length, 1);
      assert.equal(response.headers.get("x-service-activity-id"), entries[0]?.id);
      for (const [field, value] of Object.entries(counted)) {
        assert.equal(entries[0]?.usage[field], value, field);
      }
      assert.equal((await world.balance("ada")).held, "0");
    });
  }
}

Deno.test("bounds: a large response whose client leaves is read on and charged; one that breaks off too", async () => {
  using world = await paidWorld({ UPSTREAM_BODY_BYTES_MAX: "100000" });
  const text = JSON.stringify({ ...large({}), usage: usage(40, 30) });
  world.upstream.once(() => inPieces(text, "application/json"));
  const left = await world.call(completionsPath, { body: chatBody() });
  await left.body?.cancel();
  await world.until(async () => (await usageOf(world)).length === 1);
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 30);
  let sent = 0;
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent++ < 4) controller.enqueue(new TextEncoder().encode(text.slice(0, 60_000)));
      else controller.error(new Error("broken"));
    },
  }, { highWaterMark: 0 });
  world.upstream.once(() =>
    new Response(body, { headers: { "content-type": "application/json" } })
  );
  const broken = await world.call(completionsPath, { body: chatBody({ max_tokens: 100 }) });
  await assert.rejects(broken.text());
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 100);
  assert.equal((await world.balance("ada")).held, "0");
});

Deno.test("bounds: a reader who takes nothing for two minutes is let go, whole or streamed", async () => {
  using world = await paidWorld({ UPSTREAM_BODY_BYTES_MAX: "100000" });
  const text = JSON.stringify({ ...large({}), usage: usage(40, 30) });
  const frames = Array.from({ length: 50 }, () => chunk({ content: "word ".repeat(100) }));
  for (
    const [stream, answer] of [
      [false, () => inPieces(text, "application/json")],
      [true, () => sse([...frames, chunk({}, "stop"), usageChunk(usage(40, 30))])],
    ] as const
  ) {
    world.upstream.once(answer);
    const response = await world.call(completionsPath, { body: chatBody({ stream }) });
    const reader = response.body?.getReader();
    assert.ok(reader);
    await reader.read();
    for (let waited = 0; waited < 130; waited += 10) await world.clock.advance(10_000);
    await world.until(async () => (await world.balance("ada")).held === "0");
    await assert.rejects((async () => {
      while (!(await reader.read()).done);
    })());
  }
  assert.equal((await usageOf(world)).length, 2);
});

Deno.test("bounds: an error that was charged is the answer to its idempotency key, without another charge", async () => {
  using world = await paidWorld({ UPSTREAM_TIMEOUT_MS: "60000" });
  const body = new ReadableStream<Uint8Array>({
    start: (controller) =>
      controller.enqueue(new TextEncoder().encode(`{"usage":${JSON.stringify(usage(40, 30))},`)),
  });
  world.upstream.once(() =>
    new Response(body, { headers: { "content-type": "application/json" } })
  );
  const call = () =>
    world.json(completionsPath, { body: chatBody(), headers: { "idempotency-key": "k" } });
  const running = call();
  await world.until(() => world.upstream.calls.length > 0);
  await world.clock.advance(61_000);
  const first = await running;
  assert.deepEqual([first.status, first.body.error.code], [504, "upstream_timeout"]);
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 30);
  const again = await call();
  assert.deepEqual([again.status, again.body], [504, first.body]);
  assert.equal(again.response.headers.get("idempotent-replayed"), "true");
  assert.equal(again.response.headers.get("x-should-retry"), "false");
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("bounds: events that break off are 502 and free for a caller who asked for no stream", async () => {
  using world = await paidWorld();
  world.upstream.once(() =>
    inPieces(`data: ${JSON.stringify(chunk({ content: "Hel" }))}\n\n`, "text/event-stream")
  );
  assert.equal((await chat(world)).status, 502);
  assert.deepEqual(await usageOf(world), []);
});

Deno.test("bounds: events with log probabilities are put together in time that grows with them", async () => {
  using world = await paidWorld();
  const logprobs = { content: [{ token: "a", logprob: -1 }] };
  const piece = { ...chunk({ content: "a" }) };
  const [choice] = piece.choices;
  const frame = `data: ${JSON.stringify({ ...piece, choices: [{ ...choice, logprobs }] })}\n\n`;
  await assertGrowth((events) => {
    const text = `${frame.repeat(events)}data: ${JSON.stringify(chunk({}, "stop"))}\n\n`;
    return async () => {
      world.upstream.once(() => inPieces(text, "text/event-stream"));
      const { body } = await chat(world);
      assert.equal(body.choices[0].message.content.length, events);
      assert.equal(body.choices[0].logprobs.content.length, events);
    };
  }, { size: 10_000 });
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
  [{ type: "overloaded_error", message: "busy" }, 529],
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
