import assert from "node:assert/strict";
import fc from "fast-check";
import type { EventSourceMessage } from "eventsource-parser";
import { chatFormat } from "../../src/formats/chat/chat_format.ts";
import { chatChoice } from "../../src/formats/chat/choice.ts";
import { ChoiceStreamTransform } from "../../src/formats/openai/stream_transform.ts";
import { MemoryBudget } from "../../src/base/memory_budget.ts";
import { createEventReader, isLargePart } from "../../src/upstreams/event_reader.ts";
import { readStream } from "../../src/http/by_fetch.ts";
import { meterBounds } from "../support/meter.ts";
import { UsageMeter } from "../../src/inference/meter/usage_meter.ts";
import { sseFrame } from "../../src/formats/openai/sse.ts";
import { chatStream, usageOf } from "../support/chat.ts";
import { createHandClock } from "../support/clock.ts";
import { always, anyText, jsonText, spoiled } from "../support/property.ts";
import { chunk, sseBytes, usageChunk } from "../support/upstream.ts";
import { createWorld } from "../support/world.ts";

const plainRequest = chatFormat.readRequest(
  { model: "m", messages: [{ role: "user", content: "Hi" }] },
  { bytes: 1, fields: { unknown: "refuse", allowed: [] } },
);

type Event = Pick<EventSourceMessage, "event" | "data">;

const encoder = new TextEncoder();

/** The events that a reader returns for a body in these parts. */
async function eventsOf(parts: Uint8Array[], eventCharsMax = 8_000_000): Promise<Event[]> {
  const { body } = sseBytes(parts);
  assert.ok(body);
  const { signal } = new AbortController();
  const reader = createEventReader(readStream(body, signal), {
    clock: createHandClock(),
    idleMs: 1_000,
    eventCharsMax,
    memory: new MemoryBudget(8_000_000).share(),
    signal,
  });
  const events: Event[] = [];
  let large = "";
  for (;;) {
    const read = await reader.next();
    if (read === "end") return events;
    assert.ok(read !== "silent");
    if (isLargePart(read)) {
      large += read.largeText;
      if (!read.isLast) continue;
      events.push({ event: undefined, data: large.replace(/^data: ?/, "") });
      large = "";
    } else for (const { event, data } of read) events.push({ event, data });
  }
}

/** The bytes in parts that end at these places, wherever in a character or a line they are. */
function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) =>
    a - b
  );
  const starts = [0, ...ends];
  return starts.map((start, at) => bytes.slice(start, ends[at] ?? bytes.length));
}

const bytewise = (bytes: Uint8Array) => [...bytes].map((byte) => Uint8Array.of(byte));

const cuts = fc.array(fc.nat(4_000), { maxLength: 20 });
const lineEnd = fc.constantFrom("\n", "\r", "\r\n");
/** Text of one line, of characters that take one to four bytes. */
const line = fc.oneof(fc.constantFrom("", " ", "zoë €uro 😀", "[DONE]", "{}"), anyText)
  .map((text) => text.toWellFormed().replace(/[\r\n]/g, ""));
/** A line that is not one of our fields: a comment, or a field that the standard ignores. */
const noise = fc.tuple(fc.constantFrom(":", ": ", "id: ", "retry: 5", "x-", "Data: "), line)
  .map(([name, text]) => name + text);

/** An event as a server may write it, and its content. */
const written = fc.record({
  before: fc.array(noise, { maxLength: 2 }),
  name: fc.option(fc.constantFrom("error", "message", "ping"), { nil: undefined }),
  data: fc.array(line, { minLength: 1, maxLength: 3 }),
  space: fc.boolean(),
  end: lineEnd,
}).map(({ before, name, data, space, end }) => {
  // A space before the colon belongs to the field's name.
  const value = (text: string) => (space || text.startsWith(" ") ? ` ${text}` : text);
  const lines = [
    ...before,
    ...(name ? [`event:${value(name)}`] : []),
    ...data.map((text) => `data:${value(text)}`),
  ];
  const text = lines.map((each) => each + end).join("") + end;
  return { text, event: { event: name, data: data.join("\n") } };
});

/** A stream, with or without a byte order mark; its last event may lack its end. */
const stream = fc.record({
  mark: fc.constantFrom("", "\ufeff"),
  events: fc.array(written, { maxLength: 5 }),
  missing: fc.nat(2),
}).map(({ mark, events, missing }) => {
  const text = events.map(({ text }) => text).join("");
  return { bytes: encoder.encode(mark + text.slice(0, text.length - missing)), events };
});

Deno.test("sse: any events are read as they were written, however their bytes are split", () =>
  always(
    400,
    fc.asyncProperty(stream, cuts, async ({ bytes, events }, places) => {
      const expected = events.map(({ event }) => event);
      assert.deepEqual(await eventsOf(cutAt(bytes, places)), expected);
    }),
  ));

Deno.test("sse: any events are read as they were written, also byte by byte", () =>
  always(
    40,
    fc.asyncProperty(stream, async ({ bytes, events }) => {
      assert.deepEqual(await eventsOf(bytewise(bytes)), events.map(({ event }) => event));
    }),
  ));

/**
 * Bytes that resemble a stream of events: its words and line ends in any order, and any other
 * bytes.
 */
const anyBytes = fc.array(
  fc.oneof(
    fc.constantFrom(
      "data:1\r\n",
      "data:2\r",
      "data:",
      "data",
      "event:",
      "id:",
      ":",
      " ",
      "\n",
      "\r",
      "\r\n",
      "\n\n",
    )
      .map((text) => [...encoder.encode(text)]),
    line.map((text) => [...encoder.encode(text)]),
    fc.array(fc.nat(255), { maxLength: 4 }),
    fc.constantFrom([0xef, 0xbb, 0xbf], [0xe2, 0x82], [0xf0, 0x9f, 0x98], [0xff]),
  ),
  { maxLength: 20 },
).map((parts) => Uint8Array.from(parts.flat()));

Deno.test("sse: any bytes give the same events in one piece, in parts and byte by byte", () =>
  always(
    250,
    fc.asyncProperty(anyBytes, cuts, async (bytes, places) => {
      const whole = await eventsOf([bytes]);
      assert.deepEqual(await eventsOf(cutAt(bytes, places)), whole);
      assert.deepEqual(await eventsOf(bytewise(bytes)), whole);
    }),
  ));

const chunkLike = fc.oneof(
  fc.constantFrom("", 0, false, null, [], {}, "5")
    .map((usage) => JSON.stringify(chunk({ content: "a" }, null, { usage }))),
  jsonText,
  anyText,
  spoiled(chunk({ role: "assistant", content: "Hello", tool_calls: [] })),
  spoiled(chunk({ content: "zoë" }, "stop", { usage: { prompt_tokens: 1, completion_tokens: 2 } })),
  spoiled({ error: { message: "no", code: 5, type: null } }),
);

Deno.test("sse: whatever an upstream's events contain, the caller reads complete events of JSON", () =>
  always(
    400,
    fc.asyncProperty(
      fc.array(fc.record({ data: chunkLike, event: fc.constantFrom(undefined, "error") }), {
        maxLength: 4,
      }),
      fc.boolean(),
      async (events, wantsUsage) => {
        const countInput = () => Promise.resolve(7);
        const chunks = new ChoiceStreamTransform({
          meter: new UsageMeter({
            choices: 1,
            ...meterBounds(100, 100),
            countInput,
            clock: createHandClock(),
          }),
          request: { ...plainRequest, wantsUsage },
          head: { id: "chatcmpl-1", created: 1, model: "m" },
          apiKey: null,
          notice: { atLength: () => "cut", atEnd: null },
        }, chatChoice);
        let frames = "";
        for (const { data, event } of events) frames += chunks.take({ data, event, id: undefined });
        frames += chunks.finish("stop", "1");
        for (const { data } of await eventsOf([encoder.encode(frames)])) {
          const told = JSON.parse(data);
          assert.equal(typeof told, "object");
          assert.ok(!told.error, "an error is told once, at the end");
          assert.ok(wantsUsage ? told.usage === null : !("usage" in told), "usage is held back");
        }
      },
    ),
  ));

Deno.test("sse: any data is one event again, line by line", () =>
  always(
    500,
    fc.asyncProperty(anyText, async (text) => {
      const data = text.toWellFormed();
      const [event, ...more] = await eventsOf([encoder.encode(sseFrame(data))]);
      assert.equal(event?.data, data.replace(/\r\n?/g, "\n"));
      assert.equal(more.length, 0);
    }),
  ));

const piece = fc.tuple(line.map((text) => text.slice(0, 20).toWellFormed()), lineEnd);
const answer = fc.array(piece, { minLength: 1, maxLength: 4 }).map((pieces) => {
  const chunks = [
    chunk({ role: "assistant", content: "" }),
    ...pieces.map(([content]) => chunk({ content })),
    chunk({}, "stop"),
    usageChunk(),
  ].map((value) => JSON.stringify(value)).concat("[DONE]");
  const text = chunks.map((data, at) => {
    const end = pieces[at % pieces.length]?.[1] ?? "\n";
    return `: ping${end}data: ${data}${end}${end}`;
  }).join("");
  return { bytes: encoder.encode(text), content: pieces.map(([content]) => content).join("") };
});

Deno.test("sse: a streamed response has the same content and cost, however its bytes arrive", async () => {
  using world = await createWorld();
  await world.deposit("ada", "1000");
  await always(
    10,
    fc.asyncProperty(answer, cuts, async ({ bytes, content }, places) => {
      const texts = new Set<string>();
      for (const parts of [[bytes], cutAt(bytes, places), bytewise(bytes)]) {
        world.upstream.once(() => sseBytes(parts));
        const options = { stream_options: { include_usage: true } };
        texts.add(await (await chatStream(world, options)).text());
        assert.equal((await usageOf(world))[0]?.amount, "0.00002");
      }
      assert.equal(texts.size, 1);
      const events = await eventsOf([encoder.encode([...texts].join(""))]);
      assert.equal(events.at(-1)?.data, "[DONE]");
      const said = events.slice(0, -1).flatMap(({ data }) => JSON.parse(data).choices)
        .map(({ delta }) => delta.content ?? "");
      assert.equal(said.join(""), content);
    }),
  );
});
