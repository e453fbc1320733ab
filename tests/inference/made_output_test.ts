import assert from "node:assert/strict";
import { chat, chatStream, usageOf } from "../support/chat.ts";
import { respond, upstreamResponse } from "../support/responses.ts";
import { chunk, completion, sse, usage, usageChunk } from "../support/upstream.ts";
import { verify } from "../support/verify.ts";
import { base64, be, pngChunk, pngStart } from "../pricing/image_headers.ts";
import { type Body, createWorld, type World } from "../support/world.ts";

const gemini = "google/gemini-2.5-flash-image";
const newGemini = "google/gemini-3-pro-image-preview";
const price = { input: "1", output: "2", imageOutput: "30", maxOutputTokens: 4_096 };

async function paidWorld(): Promise<World> {
  const models = { [gemini]: price, [newGemini]: price, "gpt-5-image": price, "test-model": price };
  const world = await createWorld({ project: { pricing: { models } } });
  await world.deposit("ada", "10");
  return world;
}

function png(width: number, height: number): string {
  const header = pngChunk("IHDR", [...be(width, 4), ...be(height, 4), 8, 6, 0, 0, 0]);
  return `data:image/png;base64,${base64([...pngStart, ...header, ...be(width * height, 64)])}`;
}
const image = (url: string) => ({ type: "image_url", image_url: { url } });

/** A message without reported usage, its model, and the tokens of text and images. */
const made: [string, string, Body, [least: number, most: number], number][] = [
  [
    "a picture of Gemini 2.5",
    gemini,
    { content: "", images: [image(png(1024, 1024))] },
    [0, 0],
    1290,
  ],
  [
    "a picture and a text",
    gemini,
    { content: "Here it is", images: [image(png(1344, 768))] },
    [2, 5],
    1290,
  ],
  [
    "one picture, sent twice",
    gemini,
    {
      content: null,
      images: [image(png(1024, 1024)), image(png(1024, 1024))],
    },
    [0, 0],
    1290,
  ],
  [
    "two pictures",
    gemini,
    {
      content: null,
      images: [image(png(1024, 1024)), image(png(1024, 1025))],
    },
    [0, 0],
    2580,
  ],
  [
    "a picture of Gemini 3",
    newGemini,
    { content: "", images: [image(png(2048, 2048))] },
    [0, 0],
    1120,
  ],
  ["a large one of it", newGemini, { content: "", images: [image(png(4096, 4096))] }, [0, 0], 2000],
  [
    "a picture of OpenAI",
    "gpt-5-image",
    { content: "", images: [image(png(1024, 1536))] },
    [0, 0],
    6240,
  ],
  [
    "a picture at an address",
    gemini,
    { content: "", images: [image("https://x.test/a")] },
    [0, 0],
    1290,
  ],
  [
    "a picture as a part of the content",
    gemini,
    {
      content: [{ type: "text", text: "Here it is" }, image(png(1024, 1024))],
    },
    [2, 5],
    1290,
  ],
  [
    "sound with a transcript",
    "test-model",
    {
      content: null,
      audio: { id: "a", data: "AAAA", transcript: "word ".repeat(300) },
    },
    [299, 305],
    0,
  ],
  [
    "reasoning in details",
    "test-model",
    {
      content: "Hi",
      reasoning_details: [
        { type: "reasoning.text", text: "word ".repeat(200) },
        { type: "reasoning.summary", summary: "word ".repeat(100) },
        { type: "reasoning.encrypted", data: "AAAA".repeat(1_000) },
      ],
    },
    [300, 306],
    0,
  ],
  [
    "reasoning in both places",
    "test-model",
    {
      content: "Hi",
      reasoning: "word ".repeat(200),
      reasoning_details: [{ type: "reasoning.text", text: "word ".repeat(200) }],
    },
    [200, 205],
    0,
  ],
];

for (const [what, model, message, [least, most], images] of made) {
  Deno.test(`made output: without a report, ${what} is counted`, async () => {
    using world = await paidWorld();
    const said = { role: "assistant", ...message };
    const choices = [{ index: 0, message: said, finish_reason: "stop" }];
    const check = async (how: string) => {
      const [entry] = await usageOf(world);
      const { outputTokens = 0, imageOutputTokens = 0, source } = entry?.usage ?? {};
      assert.ok(outputTokens >= least && outputTokens <= most, `${how}: ${outputTokens}`);
      assert.equal(imageOutputTokens, images, how);
      assert.equal(source, "estimated");
    };
    world.upstream.once(() => completion({ model, choices, usage: undefined }));
    assert.equal((await chat(world, { model })).status, 200);
    await check("whole");
    for (const tail of [[], [usageChunk(usage(0, 0))]]) {
      const first = { ...chunk(said), model };
      world.upstream.once(() => sse([first, { ...chunk({}, "stop"), model }, ...tail]));
      await (await chatStream(world, { model })).text();
      await check(`streamed ${tail.length}`);
    }
    // Without a stream, it is put together from events.
    world.upstream.once(() => sse([{ ...chunk(said), model }, { ...chunk({}, "stop"), model }]));
    assert.equal((await chat(world, { model })).status, 200);
    await check("put together");
    assert.deepEqual((await verify(world)).faults, []);
  });
}

Deno.test("made output: a report counts in place of our own count", async () => {
  using world = await paidWorld();
  const message = { role: "assistant", content: "", images: [image(png(1024, 1024))] };
  const choices = [{ index: 0, message, finish_reason: "stop" }];
  world.upstream.once(() => completion({ model: gemini, choices, usage: usage(10, 1295) }));
  await chat(world, { model: gemini });
  const [entry] = await usageOf(world);
  assert.deepEqual([entry?.usage.imageOutputTokens, entry?.usage.source], [1295, "provider"]);
});

Deno.test("made output: a picture in a response's message is counted", async () => {
  using world = await paidWorld();
  const content = [{ type: "output_image", image_url: png(1024, 1024) }];
  const output = [{
    id: "msg_1",
    type: "message",
    role: "assistant",
    status: "completed",
    content,
  }];
  world.upstream.once(() =>
    Response.json(upstreamResponse({ model: gemini, output, usage: null }))
  );
  await respond(world, { model: gemini });
  assert.equal((await usageOf(world))[0]?.usage.imageOutputTokens, 1290);
});
