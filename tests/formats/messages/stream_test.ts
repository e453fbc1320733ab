import assert from "node:assert/strict";
import fc from "fast-check";
import { openReader, usageOf } from "../../support/chat.ts";
import {
  claudeUsage,
  closed,
  ended,
  eventBytes,
  helloEvents,
  message,
  messageStream,
  messagesWorld,
  opened,
  readMessageEvents,
  said,
  send,
  sendStream,
  start,
  stopped,
  textIn,
} from "../../support/messages.ts";
import { fedStream, sseBytes } from "../../support/upstream.ts";
import type { Body } from "../../support/world.ts";

Deno.test("messages stream: wherever its bytes are cut, the caller reads the same", async () => {
  using world = await messagesWorld();
  const events = [
    start({ id: "msg_ü" }),
    opened(0, { type: "thinking", thinking: "", signature: "" }),
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "Grüße" } },
    closed(0),
    opened(1),
    said(1, "Hello 🦕"),
    said(1, " thère"),
    closed(1),
    ended("end_turn"),
    stopped,
  ];
  const bytes = eventBytes(events).flatMap((one) => [...one]);
  world.upstream.once(() => messageStream(events));
  const expected = await (await sendStream(world)).text();
  const cuts = fc.array(fc.integer({ min: 0, max: bytes.length }), { maxLength: 12 });
  await fc.assert(
    fc.asyncProperty(cuts, async (at) => {
      const places = [0, ...at.sort((one, other) => one - other), bytes.length];
      const parts = places.slice(1).map((end, index) =>
        Uint8Array.from(bytes.slice(places[index], end))
      );
      world.upstream.once(() => sseBytes(parts.filter(({ length }) => length > 0)));
      assert.equal(await (await sendStream(world)).text(), expected);
    }),
    { numRuns: 30 },
  );
});

Deno.test("messages stream: each event is passed on before the next one arrives", async () => {
  using world = await messagesWorld();
  const fed = fedStream();
  world.upstream.once(() => fed.response);
  for (const event of [start(), opened(0), said(0, "Hi")]) fed.send(event);
  const response = await sendStream(world, {}, { keepClock: true });
  const reader = openReader(response);
  assert.match(await reader.read() ?? "", /^event: message_start\n/);
  for (const event of [{ type: "ping" }, said(0, "Hello"), closed(0)]) {
    fed.send(event);
    assert.equal(await reader.read(), `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  }
  fed.send(ended("end_turn"));
  fed.send(stopped);
  assert.match(
    await reader.read() ?? "",
    /^event: message_delta\n.*"cost".*\n\nevent: message_stop/,
  );
});

Deno.test("messages stream: the charge is made before the stop reason is said", async () => {
  using world = await messagesWorld();
  const reader = openReader(await sendStream(world));
  for (let text = await reader.read(); text !== null; text = await reader.read()) {
    if (text.includes('stop_reason":"end_turn')) assert.equal((await usageOf(world)).length, 1);
  }
});

/** What a caller sees whose balance pays for some tokens only. */
const cut = { balance: "0.02", text: "word ".repeat(1_200) };
const tools = [{ name: "look", input_schema: { type: "object" } }];
const link = /Top up here to get more: https?:/;

for (const structured of [false, true]) {
  Deno.test(`messages stream: a text that the balance cuts ends with the link${structured ? " beside tools" : ""}, whole and streamed`, async () => {
    for (const stream of [false, true]) {
      using world = await messagesWorld({ balance: cut.balance });
      const usage = claudeUsage(10, 1_200);
      world.upstream.once(() =>
        stream
          ? messageStream([
            start(),
            opened(0),
            said(0, cut.text),
            closed(0),
            ended("max_tokens", { output_tokens: 1_200 }),
            stopped,
          ])
          : message({
            content: [{ type: "text", text: cut.text }],
            stop_reason: "max_tokens",
            usage,
          })
      );
      const fields = { max_tokens: 32_000, ...(structured ? { tools } : {}) };
      const reason = structured ? "max_tokens" : "end_turn";
      if (stream) {
        const events = await readMessageEvents(await sendStream(world, fields));
        assert.match(textIn(events), link);
        assert.equal(events.at(-2)?.delta.stop_reason, reason);
        assert.deepEqual(events.slice(-4).map(({ type }) => type), [
          "content_block_delta",
          "content_block_stop",
          "message_delta",
          "message_stop",
        ]);
        assert.equal(events.filter(({ type }) => type === "content_block_stop").length, 1);
      } else {
        const { body } = await send(world, fields);
        assert.match(body.content[0].text, link);
        assert.equal(body.stop_reason, reason);
      }
    }
  });
}

const toolUse = { type: "tool_use", id: "toolu_1", name: "look", input: {} };
const thinking = { type: "thinking", thinking: "Hm", signature: "s" };
for (
  const [what, block, reason, isSaid] of [
    ["a call of a tool", toolUse, "tool_use", false],
    ["a call of a tool that is cut", toolUse, "max_tokens", false],
    ["a pause", { type: "text", text: "a" }, "pause_turn", false],
    ["thinking that is cut", thinking, "max_tokens", true],
    ["a text", { type: "text", text: "a" }, "end_turn", false],
  ] as const
) {
  Deno.test(`messages stream: after ${what} the link is ${isSaid ? "" : "not "}said`, async () => {
    using world = await messagesWorld({ balance: cut.balance });
    world.upstream.once(() => message({ content: [block], stop_reason: reason }));
    const { body } = await send(world, { max_tokens: 32_000 });
    assert.equal(link.test(JSON.stringify(body.content)), isSaid);
    assert.equal(body.stop_reason, isSaid ? "end_turn" : reason);
    world.upstream.once(() =>
      messageStream([start(), opened(0, block), closed(0), ended(reason), stopped])
    );
    const events = await readMessageEvents(await sendStream(world, { max_tokens: 32_000 }));
    assert.equal(link.test(textIn(events)), isSaid);
    assert.equal(events.at(-2)?.delta.stop_reason, isSaid ? "end_turn" : reason);
    const indexes = events.filter(({ type }) => type === "content_block_start")
      .map(({ index }) => index);
    assert.deepEqual(indexes, isSaid ? [0, 1] : [0]);
  });
}

Deno.test("messages stream: the caller's own bound says max_tokens, and no link", async () => {
  using world = await messagesWorld();
  world.upstream.once(() => messageStream(helloEvents({ reason: "max_tokens" })));
  const events = await readMessageEvents(await sendStream(world, { max_tokens: 2 }));
  assert.equal(events.at(-2)?.delta.stop_reason, "max_tokens");
  assert.equal(textIn(events), "Hello there");
});

Deno.test("messages stream: low balance is said at the end of a text", async () => {
  using world = await messagesWorld({ balance: "1", project: { lowBalance: "2" } });
  const events = await readMessageEvents(await sendStream(world));
  assert.match(textIn(events), /Hello there.+https?:/s);
  assert.equal(events.at(-2)?.delta.stop_reason, "end_turn");
  assert.match((await send(world)).body.content[0].text, /Hello there.+https?:/s);
});

for (
  const [what, open, delta] of [
    ["a text", opened(0), (text: string) => ({ type: "text_delta", text })],
    ["thinking", opened(0, { type: "thinking", thinking: "", signature: "" }), (
      text: string,
    ) => ({ type: "thinking_delta", thinking: text })],
    ["the input of a tool", opened(0, toolUse), (text: string) => ({
      type: "input_json_delta",
      partial_json: text,
    })],
  ] as const
) {
  Deno.test(`messages stream: ${what} beyond the hold is cut, charged and closed`, async () => {
    using world = await messagesWorld({ balance: "0.02" });
    const fed = fedStream();
    world.upstream.once(() => fed.response);
    fed.send(start());
    fed.send(open);
    for (let piece = 0; piece < 100; piece++) {
      const words = `word${piece} `.repeat(50);
      fed.send({ type: "content_block_delta", index: 0, delta: delta(words) });
    }
    const events = await readMessageEvents(await sendStream(world, { max_tokens: 32_000 }));
    const types: Body[] = events.slice(-3).map(({ type }) => type);
    assert.deepEqual(types.slice(-2), ["message_delta", "message_stop"]);
    assert.equal(
      events.filter(({ type }) => type === "content_block_stop").length,
      what === "thinking" ? 2 : 1,
    );
    const reason = what === "the input of a tool" ? "max_tokens" : "end_turn";
    assert.equal(events.at(-2)?.delta.stop_reason, reason);
    // It holds half of the balance: the user may have other calls.
    const { balance } = await world.balance("ada");
    assert.ok(Number(balance) > 0.009 && Number(balance) < 0.011, balance);
    await fed.cancelled;
  });
}

Deno.test("messages stream: an event that is too large passes in parts, and its usage counts", async () => {
  using world = await messagesWorld();
  const huge = "a".repeat(40 * 1024 * 1024);
  world.upstream.once(() =>
    messageStream([
      start(),
      opened(0, { type: "web_fetch_tool_result", tool_use_id: "a", content: huge }),
      closed(0),
      opened(1),
      said(1, "Hello"),
      closed(1),
      ended("end_turn", { input_tokens: 1_000, output_tokens: 100 }),
      stopped,
    ])
  );
  const text = await (await sendStream(world)).text();
  const frames = text.split("\n\n").map((frame) => frame.slice(0, 40).split("\n")[0]);
  assert.deepEqual(frames.map((line) => line?.replace("event: content_block_", "")), [
    ...["event: message_start", "start", "stop", "start", "delta", "stop"],
    ...["event: message_delta", "event: message_stop", ""],
  ]);
  assert.ok(text.includes(huge));
  assert.ok(text.includes('"cost_exact":"0.0045"'));
});

Deno.test("messages stream: a message that is too large to be parsed passes on, and is charged", async () => {
  using world = await messagesWorld();
  const text = "a".repeat(40 * 1024 * 1024);
  world.upstream.once(() =>
    message({ content: [{ type: "text", text }], usage: claudeUsage(1_000, 100) })
  );
  const { body, response } = await send(world);
  assert.equal(response.headers.get("x-service-unparsed"), "true");
  assert.equal(body.content[0].text.length, text.length);
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.amount, entry?.usage.source], ["0.0045", "provider"]);
});
