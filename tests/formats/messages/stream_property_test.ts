import assert from "node:assert/strict";
import fc from "fast-check";
import { openReader, usageOf } from "../../support/chat.ts";
import {
  asAda,
  claudeUsage,
  closed,
  ended,
  message,
  messageBody,
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
} from "../../support/messages.ts";
import { fedStream } from "../../support/upstream.ts";
import type { Body } from "../../support/world.ts";

const index = fc.constantFrom<unknown>(0, 1, 2, -1, "0", null, undefined, 1e20);
const usage = fc.constantFrom<unknown>(
  undefined,
  null,
  [],
  "none",
  claudeUsage(10, 5),
  { output_tokens: 7 },
  { input_tokens: -1, output_tokens: 1e300 },
  { input_tokens: 0, output_tokens: 0, cache_creation: 5, iterations: [1, { type: "compaction" }] },
);
const block = fc.constantFrom<unknown>(
  { type: "text", text: "" },
  { type: "text", text: "words" },
  { type: "thinking", thinking: "", signature: "" },
  { type: "tool_use", id: "a", name: "b", input: {} },
  { type: "web_search_tool_result", content: [] },
  { type: 5 },
  null,
);
const delta = fc.constantFrom<unknown>(
  { type: "text_delta", text: "words" },
  { type: "text_delta", text: 5 },
  { type: "thinking_delta", thinking: "thoughts" },
  { type: "input_json_delta", partial_json: '{"a":' },
  { type: "citations_delta", citation: {} },
  { type: "signature_delta", signature: "s" },
  { stop_reason: "end_turn", stop_sequence: null },
  { stop_reason: "max_tokens" },
  { stop_reason: {} },
  {},
  null,
);
const oddEvent: fc.Arbitrary<Body> = fc.record({
  type: fc.constantFrom<unknown>(
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "ping",
    "something_new",
    5,
  ),
  index,
  usage,
  delta,
  content_block: block,
  message: fc.constantFrom<unknown>(null, {}, start().message, { content: [{ type: "text" }] }),
});

/** Asserts what clients rely on: one start at the start, and blocks that open before they go on. */
function assertOrder(events: Body[]): void {
  const open = new Set<unknown>();
  const last = events.at(-1);
  assert.ok(last?.type === "message_stop" || last?.type === "error", JSON.stringify(last));
  for (const [place, event] of events.entries()) {
    const isStart = event.type === "message_start";
    assert.equal(isStart, place === 0 && event.type !== "error", `${place}: ${event.type}`);
    if (event.type === "content_block_start") open.add(event.index);
    if (event.type === "content_block_stop") {
      assert.ok(open.delete(event.index), `block ${event.index} was not open`);
    }
    const isText = event.type === "content_block_delta" && event.delta.type === "text_delta";
    if (isText) assert.ok(open.has(event.index), `a text outside of block ${event.index}`);
  }
  if (last?.type === "message_stop") assert.equal(open.size, 0);
}

for (const balance of ["10", "0.02"]) {
  Deno.test(`messages property: whatever an upstream sends, with ${balance} the stream is in order, and no text is free`, async () => {
    using world = await messagesWorld({ balance, project: { lowBalance: "0.01" } });
    const options = fc.tuple(fc.array(oddEvent, { maxLength: 12 }), fc.boolean());
    await fc.assert(
      fc.asyncProperty(options, async ([events, stops]) => {
        const before = (await usageOf(world)).length;
        world.upstream.once(() => messageStream(stops ? [...events, stopped] : events));
        const response = await sendStream(world, { max_tokens: 32_000 });
        if (response.headers.get("x-service-paywall")) return void await response.text();
        if (response.status !== 200) {
          assert.equal((await response.json()).type, "error");
          assert.equal((await usageOf(world)).length, before);
          return;
        }
        const got = await readMessageEvents(response);
        assertOrder(got);
        const isDelivered = got.some(({ type, delta, content_block: block }) =>
          (type === "content_block_start" && block.text === "words") ||
          (type === "content_block_delta" && delta.text === "words")
        );
        if (isDelivered) assert.equal((await usageOf(world)).length, before + 1);
        world.upstream.once(() => messageStream(stops ? [...events, stopped] : events));
        const whole = await send(world, { max_tokens: 32_000 });
        assert.ok([200, 502].includes(whole.status), JSON.stringify(whole.body));
      }),
      { numRuns: 45 },
    );
  });
}

Deno.test("messages: what a caller has got who disconnects is charged", async () => {
  using world = await messagesWorld({ price: { onAbort: "estimate" } });
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  for (const event of [start(), opened(0), said(0, "word ".repeat(50))]) fed.send(event);
  const response = await sendStream(world, {}, { keepClock: true });
  const reader = openReader(response);
  while (!(await reader.read() ?? assert.fail()).includes("word word")) continue;
  await reader.leave();
  await fed.cancelled;
  await world.until(async () => (await usageOf(world)).length === 1);
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.uncachedInputTokens, 10);
  assert.ok(entry?.usage.outputTokens >= 50);
});

Deno.test("messages: a repeated request under one key gets the same message, and is charged once", async () => {
  using world = await messagesWorld();
  const ask = () =>
    world.json(messagesPath, {
      body: messageBody(),
      headers: { ...asAda, "idempotency-key": "one" },
    });
  const [first, second] = [await ask(), await ask()];
  assert.deepEqual(second.body, first.body);
  assert.equal(second.response.headers.get("idempotent-replayed"), "true");
  assert.ok(second.response.headers.get("request-id"));
  assert.equal((await usageOf(world)).length, 1);
});

Deno.test("messages: a stream without message_stop ends as one with it", async () => {
  using world = await messagesWorld();
  world.upstream.once(() =>
    messageStream([start(), opened(0), said(0, "Hello"), closed(0), ended("end_turn")])
  );
  const events = await readMessageEvents(await sendStream(world));
  assert.deepEqual(events.at(-1), { type: "message_stop" });
  world.upstream.once(() => message());
  assert.equal((await send(world)).status, 200);
});
