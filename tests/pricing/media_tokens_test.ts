import assert from "node:assert/strict";
import fc from "fast-check";
import { imageSize } from "../../src/pricing/image_size.ts";
import { mediaTokens } from "../../src/pricing/media_tokens.ts";
import { chat, usageOf } from "../support/chat.ts";
import { always } from "../support/property.ts";
import { type Body, createWorld } from "../support/world.ts";
import { completion, usage } from "../support/upstream.ts";

const base64 = (bytes: ArrayLike<number>) => btoa(String.fromCharCode(...Array.from(bytes)));
const tag = (text: string) => [...text].map((char) => char.charCodeAt(0));
const be = (value: number, bytes: number) =>
  Array.from({ length: bytes }, (_, at) => (value >>> (8 * (bytes - 1 - at))) & 0xff);
const le = (value: number, bytes: number) => be(value, bytes).reverse();

/** Headers of images, by their format's specification. */
const headers: Record<string, (width: number, height: number) => number[]> = {
  png: (
    w,
    h,
  ) => [0x89, ...tag("PNG\r\n\x1a\n"), ...be(13, 4), ...tag("IHDR"), ...be(w, 4), ...be(h, 4)],
  gif: (w, h) => [...tag("GIF89a"), ...le(w, 2), ...le(h, 2)],
  "webp, lossy": (w, h) => [
    ...tag("RIFF"),
    ...le(100, 4),
    ...tag("WEBPVP8 "),
    ...le(80, 4),
    ...[0, 0, 0, 0x9d, 0x01, 0x2a],
    ...le(w, 2),
    ...le(h, 2),
  ],
  "webp, lossless": (w, h) => [
    ...tag("RIFF"),
    ...le(100, 4),
    ...tag("WEBPVP8L"),
    ...le(80, 4),
    0x2f,
    ...le((w - 1) | ((h - 1) << 14), 4),
    0,
    0,
    0,
    0,
    0,
  ],
  "webp, extended": (w, h) => [
    ...tag("RIFF"),
    ...le(100, 4),
    ...tag("WEBPVP8X"),
    ...le(10, 4),
    ...le(0, 4),
    ...le(w - 1, 3),
    ...le(h - 1, 3),
  ],
  jpeg: (w, h) => [
    0xff,
    0xd8,
    0xff,
    0xe1,
    ...be(5_002, 2),
    ...new Array(5_000).fill(0xff),
    0xff,
    0xc4,
    ...be(4, 2),
    1,
    2,
    0xff,
    0xff,
    0xc2,
    ...be(17, 2),
    8,
    ...be(h, 2),
    ...be(w, 2),
    3,
  ],
};

for (const [name, header] of Object.entries(headers)) {
  Deno.test(`media: the size of an image is read from a header of ${name}`, () => {
    for (const [width, height] of [[1, 1], [640, 480], [5_000, 3_333]] as const) {
      const data = base64([...header(width, height), ...new Array(64).fill(0)]);
      assert.deepEqual(imageSize(data), { width, height });
    }
  });
}

Deno.test("media: no data breaks the reader of sizes", () =>
  always(
    2_000,
    fc.property(
      fc.constantFrom(...Object.values(headers)),
      fc.uint8Array({ maxLength: 60 }),
      fc.nat(60),
      fc.string(),
      (header, noise, cut, text) => {
        imageSize(text);
        imageSize(base64([...header(300, 200).slice(0, cut), ...noise]));
        const tokens = mediaTokens(
          { type: "image_url", image_url: { url: `data:image/png;base64,${base64(noise)}` } },
          "gpt-4o",
        );
        assert.ok(tokens > 0 && tokens < 2_000);
      },
    ),
  ));

const image = (width: number, height: number, detail?: string) => {
  const url = `data:image/png;base64,${base64([...headers.png?.(width, height) ?? [], 0, 0, 0])}`;
  return { type: "image_url", image_url: { url, ...(detail ? { detail } : {}) } };
};
const address = { type: "image_url", image_url: { url: "https://pictures.example/1.png" } };

const table: [string, Record<string, unknown>, number][] = [
  ["gpt-4o", image(1024, 1024), 765],
  ["gpt-4o", image(1024, 1024, "low"), 85],
  ["gpt-4o", image(2048, 4096), 1105],
  ["openai/gpt-4o-2024-08-06", image(512, 512), 255],
  ["gpt-4o-mini", image(1024, 1024), 25_501],
  ["o1", image(1024, 1024), 675],
  ["gpt-5-mini", image(1024, 1024), 1_659],
  ["gpt-5-mini", image(4000, 4000), 2_489],
  ["claude-sonnet-4-5", image(1000, 1000), 1_335],
  ["claude-sonnet-4-5", image(4000, 4000), 1_601],
  ["claude-opus-5", image(4000, 4000), 4_788],
  ["gemini-2.5-flash", image(300, 300), 258],
  ["gemini-2.5-flash", image(960, 540), 1_806],
  ["gpt-4o", address, 1_445],
  ["gemini-2.5-flash", address, 4_386],
  ["unknown-vl", image(1024, 1024), 4_160],
];
for (const [model, part, tokens] of table) {
  Deno.test(`media: an image for ${model} has at most ${tokens} tokens`, () => {
    assert.equal(mediaTokens(part as never, model), tokens);
  });
}

Deno.test("media: sounds are bounded by their length, documents by their pages", () => {
  const wav = [
    ...tag("RIFF"),
    ...le(0, 4),
    ...tag("WAVEfmt "),
    ...le(16, 4),
    ...le(1, 2),
    ...le(1, 2),
    ...le(16_000, 4),
    ...le(32_000, 4),
    ...le(2, 2),
    ...le(16, 2),
    ...tag("data"),
  ];
  const data = base64([...wav, ...new Array(320_000).fill(0)].slice(0, 60_000)) +
    "A".repeat(360_000);
  const sound = { type: "input_audio", input_audio: { data, format: "wav" } };
  const seconds = data.length * 3 / 4 / 32_000;
  assert.equal(mediaTokens(sound, "gemini-2.5-flash"), Math.ceil(seconds * 32) + 1);
  const pdf = base64(tag("%PDF-1.7 /Type /Pages /Count 3 /Type /Page /Type/Page /Type /Page"));
  const file = { type: "file", file: { file_data: `data:application/pdf;base64,${pdf}` } };
  assert.equal(mediaTokens(file, "gpt-4o"), 3 * (765 + 4_000) + 1);
  const text = { type: "document", source: { type: "base64", data: base64(tag("a,b\n1,2\n")) } };
  assert.ok(mediaTokens(text, "claude-sonnet-4-5") < 20);
});

Deno.test("media: a picture works by default: held by its bound, charged by the report", async () => {
  using world = await createWorld({
    project: { pricing: { models: { "gpt-4o": { input: "1", output: "2" } } } },
  });
  await world.deposit("ada", "0.01");
  const content = [{ type: "text", text: "What is it?" }, image(1024, 1024)];
  let held = "";
  world.upstream.once(async () => {
    held = (await world.balance("ada")).held;
    return completion({ usage: usage(780, 5) });
  });
  const request = { model: "gpt-4o", messages: [{ role: "user", content }], max_tokens: 100 };
  assert.equal((await chat(world, request)).status, 200);
  // 765 of the picture, the text by its bytes, and 100 of the response.
  assert.ok(Number(held) > 0.000965 && Number(held) < 0.0013, held);
  assert.equal((await usageOf(world))[0]?.amount, "0.00079");
  const sent = (world.upstream.calls[0]?.body as Body).messages[0].content;
  assert.deepEqual(sent, content);
});
