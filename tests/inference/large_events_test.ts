import assert from "node:assert/strict";
import { chat, chatStream, usageOf } from "../support/chat.ts";
import { chunk, readEvents, sseBytes, usage, usageChunk } from "../support/upstream.ts";
import { createWorld, type World } from "../support/world.ts";

async function paidWorld(env: Record<string, string> = {}): Promise<World> {
  const world = await createWorld({ env });
  await world.deposit("ada", "1");
  return world;
}

/** A stream in pieces of 64 KiB, as a socket gives it. */
function inPieces(text: string): Response {
  const bytes = new TextEncoder().encode(text);
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += 65_536) parts.push(bytes.subarray(at, at + 65_536));
  return sseBytes(parts);
}

const picture = (chars: number) => ({
  images: [{ image_url: { url: `data:image/png;base64,${"A".repeat(chars)}` } }],
});

/** The events of a stream as text. */
const streamOf = (events: readonly unknown[]) =>
  [...events, "[DONE]"].map((event) =>
    `data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`
  ).join("");

const mebibyte = 1024 * 1024;

for (
  const [what, delta, reason] of [
    ["its text", { content: "A".repeat(2 * mebibyte) }, "stop"],
    [
      "a tool's call",
      { tool_calls: [{ index: 0, function: { arguments: "A".repeat(2 * mebibyte) } }] },
      "tool_calls",
    ],
  ] as const
) {
  Deno.test(`large events: one event above 1 MiB with ${what}, the only usage and the end passes as it is, charged exactly`, async () => {
    using world = await paidWorld();
    const whole = {
      ...chunk(delta, reason),
      model: "test-model",
      x_groq: { usage: usage(40, 30) },
    };
    world.upstream.once(() => inPieces(streamOf([whole])));
    const events = await readEvents(await chatStream(world, { max_tokens: 100 }));
    assert.deepEqual(events[0], whole);
    assert.equal(events.at(-1), "[DONE]");
    const ends = events.flatMap(({ choices = [] }) => choices)
      .map(({ finish_reason }) => finish_reason).filter(Boolean);
    assert.deepEqual(ends, [reason]);
    const [entry] = await usageOf(world);
    assert.deepEqual(
      [entry?.usage.uncachedInputTokens, entry?.usage.outputTokens, entry?.usage.source],
      [40, 30, "provider"],
    );
  });
}

Deno.test("large events: an image in an event above 1 MiB costs what images cost", async () => {
  const models = { "test-model": { input: "1", output: "2", imageOutput: "30" } };
  using world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "5");
  const events = [chunk(picture(2 * mebibyte)), chunk({}, "stop"), usageChunk(usage(10, 5))];
  world.upstream.once(() => inPieces(streamOf(events)));
  await (await chatStream(world)).text();
  const [entry] = await usageOf(world);
  assert.equal(entry?.usage.imageOutputTokens, 5);
  assert.equal(entry?.amount, "0.00016");
});

Deno.test("large events: an event that is too large to be translated ends the stream, and its usage is charged", async () => {
  using world = await createWorld({
    env: { UPSTREAM_EVENT_BYTES_MAX: "100000" },
    project: { upstream: { url: "https://upstream.test/v1", formats: ["chat"] } },
  });
  await world.deposit("ada", "1");
  for (const stream of [true, false]) {
    const whole = { ...chunk({ content: "A".repeat(300_000) }, "stop"), usage: usage(40, 30) };
    world.upstream.once(() => inPieces(streamOf([whole])));
    const body = { model: "test-model", user: "ada", input: "Hi", stream, max_output_tokens: 90 };
    const response = await world.call("/v1/responses", { body });
    assert.match(await response.text(), /response_too_large/);
    const [entry] = await usageOf(world);
    assert.deepEqual(
      [entry?.usage.uncachedInputTokens, entry?.usage.outputTokens],
      [40, 30],
      `${stream}`,
    );
  }
});

Deno.test("large events: events in place of a whole response that are too large are charged what they report", async () => {
  using world = await paidWorld({ UPSTREAM_EVENT_BYTES_MAX: "100000" });
  const whole = { ...chunk({ content: "A".repeat(300_000) }, "stop"), usage: usage(40, 30) };
  world.upstream.once(() => inPieces(streamOf([whole])));
  const { status, body } = await chat(world, { max_tokens: 90 });
  assert.equal(status, 502);
  assert.equal(body.error.code, "response_too_large");
  assert.equal((await usageOf(world))[0]?.usage.outputTokens, 30);
});

Deno.test("large events: what parsing takes counts, also where an event has many lines; the memory is given back", async () => {
  // An eighth is for responses: 2.5 MiB, and a character takes four bytes.
  using world = await paidWorld({ BODIES_BYTES_MAX: String(20 * mebibyte) });
  const inLines = (padding: number) => {
    const large = { ...chunk({ content: "Hi" }), x: Array(padding).fill("A".repeat(1_000)) };
    const lines = JSON.stringify(large, null, 1).split("\n").map((line) => `data: ${line}\n`);
    return `${lines.join("")}\n${streamOf([chunk({}, "stop"), usageChunk(usage(10, 5))])}`;
  };
  for (let n = 0; n < 5; n++) {
    world.upstream.once(() => inPieces(inLines(500)));
    assert.ok((await (await chatStream(world)).text()).endsWith("data: [DONE]\n\n"));
  }
  world.upstream.once(() => inPieces(inLines(900)));
  const cut = await chatStream(world);
  assert.equal(cut.status, 502);
  assert.match(await cut.text(), /response_too_large/);
});
