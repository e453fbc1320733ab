import assert from "node:assert/strict";
import fc from "fast-check";
import { imageSize } from "../../src/pricing/image_size.ts";
import { imageTokens } from "../../src/pricing/image_tokens.ts";
import { createMediaWork } from "../../src/pricing/media_work.ts";
import { mediaTokens } from "../../src/pricing/media_tokens.ts";
import { always } from "../support/property.ts";
import {
  base64,
  contradictions,
  frame,
  imageHeaders,
  le,
  pngChunk,
  pngStart,
  scan,
  segment,
  tag,
} from "./image_headers.ts";

const ceilDiv = (a: number, b: number) => Math.ceil(a / b);
const cover = (w: number, h: number, side: number) => ceilDiv(w, side) * ceilDiv(h, side);

for (const [name, header] of Object.entries(imageHeaders)) {
  Deno.test(`image bounds: the size of any image is read: ${name}`, () =>
    always(
      60,
      fc.property(
        fc.integer({ min: 1, max: 16_000 }),
        fc.integer({ min: 1, max: 16_000 }),
        fc.boolean(),
        (width, height, isUrlSafe) => {
          const data = base64([...header(width, height), ...new Array(64).fill(0)]);
          const sent = isUrlSafe
            ? data.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")
            : data.replace(/.{76}/g, "$&\r\n");
          assert.deepEqual(imageSize(sent), { width, height });
        },
      ),
    ));
}

for (const [name, bytes] of Object.entries(contradictions)) {
  Deno.test(`image bounds: the larger size counts: ${name}`, () => {
    const size = imageSize(base64(bytes));
    assert.ok(size && size.width >= 4_000 && size.height >= 3_000, JSON.stringify(size));
  });
}

/** Nothing that a size can be read from. */
const unreadable: Record<string, string> = {
  "no data": "",
  "no base64": "*not base64*",
  "another format": base64([0x42, 0x4d, ...new Array(80).fill(9)]),
  "a header that ends early": base64(imageHeaders.png?.(10, 10).slice(0, 20) ?? []),
  "a side of 0": base64(imageHeaders.png?.(0, 10) ?? []),
  "a JPEG without a frame": base64([0xff, 0xd8, ...scan]),
  "a JPEG whose lines follow its scan": base64([0xff, 0xd8, ...frame(0xc0, 10, 0), ...scan]),
  "a PNG without a header": base64([...pngStart, ...pngChunk("IDAT", [1, 2, 3])]),
  "a frame far behind": base64([
    ...[0xff, 0xd8, ...frame(0xc0, 1, 1)],
    ...Array.from({ length: 80 }, () => segment(0xe1, new Array(65_000).fill(1))).flat(),
    ...frame(0xc0, 9_000, 9_000),
  ]),
};
const models = [
  ...["gpt-4o", "gpt-4o-mini", "gpt-5.6-sol", "o1", "claude-sonnet-4-5", "claude-opus-4-7"],
  ...["gemini-2.5-flash", "gemini-3-pro-preview", "unknown-vl"],
];
for (const [name, data] of Object.entries(unreadable)) {
  Deno.test(`image bounds: the most of any image counts: ${name}`, () => {
    assert.equal(imageSize(data), null);
    for (const model of models) {
      const largest = { width: 16_000, height: 16_000 };
      const most = imageTokens(model, { size: null, detail: null });
      assert.ok(most >= imageTokens(model, { size: largest, detail: null }), model);
    }
  });
}

/** Claude's own rule: the largest size within both limits, which keeps the proportions. */
function claudeBills(width: number, height: number, edge: number, most: number): number {
  const fits = (w: number, h: number) =>
    ceilDiv(w, 28) * 28 <= edge && ceilDiv(h, 28) * 28 <= edge && cover(w, h, 28) <= most;
  if (fits(width, height)) return cover(width, height, 28);
  const [long, short] = [Math.max(width, height), Math.min(width, height)];
  let at = long;
  const shortOf = (side: number) => Math.max(1, Math.round(side * short / long));
  while (!fits(at, shortOf(at))) at--;
  return cover(at, shortOf(at), 28);
}

/** OpenAI's patches: scaled down to a budget, in single precision. */
function patchesBill(
  width: number,
  height: number,
  { factor, budget, side = Infinity }: { factor: number; budget: number; side?: number },
): number {
  const fit = Math.min(1, side / Math.max(width, height));
  const [w, h] = [Math.max(1, Math.round(width * fit)), Math.max(1, Math.round(height * fit))];
  let patches = cover(w, h, 32);
  if (patches > budget) {
    let shrink = Math.sqrt(32 * 32 * budget / (w * h));
    const [across, down] = [w * shrink / 32, h * shrink / 32];
    shrink *= Math.min(Math.floor(across) / across, Math.floor(down) / down) || 1;
    patches = Math.min(budget, cover(Math.max(1, w * shrink), Math.max(1, h * shrink), 32));
  }
  return Math.ceil(patches * Math.fround(factor));
}

function tilesBill(width: number, height: number, base: number, perTile: number): number {
  const fit = Math.min(1, 2_048 / Math.max(width, height));
  const [w, h] = [Math.round(width * fit), Math.round(height * fit)];
  const shorter = Math.min(1, 768 / Math.max(1, Math.min(w, h)));
  const side = (length: number) => Math.max(1, Math.round(length * shorter));
  return base + perTile * cover(side(w), side(h), 512);
}

/** What was measured: at most 12 tiles, and a preview. */
function geminiBills(width: number, height: number): number {
  if (width <= 384 && height <= 384) return 258;
  const side = Math.min(768, Math.max(256, Math.floor(Math.min(width, height) * 2 / 3)));
  return 258 * (Math.min(12, cover(width, height, side)) + 1);
}

type Bills = (width: number, height: number) => number;
const standard: Bills = (w, h) => claudeBills(w, h, 1_568, 1_568) + 4;
const large: Bills = (w, h) => claudeBills(w, h, 2_576, 4_784) + 3;
const gpt = (factor: number, budget: number, side?: number): Bills => (w, h) =>
  patchesBill(w, h, { factor, budget, ...(side ? { side } : {}) });
const tile = (base: number, perTile: number): Bills => (w, h) => tilesBill(w, h, base, perTile);

/** By model and detail, what its provider bills; some are refused above 30,000 patches. */
const billed: [string, string | null, Bills][] = [
  ["claude-3-5-sonnet-20241022", null, (w, h) => Math.min(1_600, Math.round(w * h / 750))],
  ["claude-sonnet-4-20250514", null, standard],
  ["claude-opus-4-1-20250805", null, standard],
  ["anthropic/claude-sonnet-4.6", null, standard],
  ["us.anthropic.claude-haiku-4-5-20251001-v1:0", null, standard],
  ["claude-opus-4-7", null, large],
  ["anthropic/claude-opus-4.7", null, large],
  ["anthropic.claude-opus-4-7-v1:0", null, large],
  ["claude-4.8-opus@20260601", null, large],
  ["claude-opus-5", null, large],
  ["claude-sonnet-5-20260901", null, large],
  ["claude-fable-5", null, large],
  ["claude-sonnet-latest", null, large],
  ["gpt-4o", null, tile(85, 170)],
  ["gpt-4o", "high", tile(85, 170)],
  ["gpt-4o", "low", () => 85],
  ["gpt-4.1-2025-04-14", null, tile(85, 170)],
  ["gpt-4o-mini", "auto", tile(2_833, 5_667)],
  ["gpt-4o-mini", "low", () => 2_833],
  ["o3", null, tile(75, 150)],
  ["gpt-5", null, tile(70, 140)],
  ["gpt-5-2025-08-07", "low", () => 70],
  ["gpt-5.1", null, tile(70, 140)],
  ["gpt-4.1-mini", null, gpt(1.62, 6_144, 2_048)],
  ["gpt-4.1-nano", "low", gpt(2.46, 1_536)],
  ["o4-mini", null, gpt(1.72, 1_536)],
  ["gpt-5-mini-2025-08-07", null, gpt(1.62, 1_536)],
  ["gpt-5-nano", null, gpt(2.46, 1_536)],
  ["gpt-5.2", null, gpt(1.2, 6_144, 2_048)],
  ["gpt-5.4", null, gpt(1.2, 2_500, 2_048)],
  ["gpt-5.4", "original", gpt(1.2, 10_000, 6_000)],
  ["gpt-5.4-mini", null, gpt(1.62, 2_500, 2_048)],
  ["gpt-5.5", null, gpt(1.2, 10_000, 6_000)],
  ["gpt-5.5", "high", gpt(1.2, 2_500, 2_048)],
  ["gpt-5.5", "low", gpt(1.2, 256, 512)],
  ["openai/gpt-5.6-sol", "auto", gpt(1.2, 30_000)],
  ["gpt-6-astra", "original", gpt(1.2, 30_000)],
  ["gpt-6-astra", "high", gpt(1.2, 2_500)],
  ["my-gpt-5.6-deployment", null, gpt(1.2, 30_000)],
  ["gemini-2.5-flash", null, geminiBills],
  ["google/gemini-2.0-flash-001", null, geminiBills],
  ["gemini-3-pro-preview", null, () => 1_120],
  ["gemini-3-pro-preview", "media_resolution_ultra_high", () => 2_240],
  ["gemini-flash-latest", null, (w, h) => Math.max(1_120, geminiBills(w, h))],
  ["grok-2-vision", null, (w, h) => Math.min(1_792, 256 * (cover(w, h, 448) + 1))],
  ["qwen/qwen2.5-vl-72b-instruct", null, (w, h) => Math.min(16_384, cover(w, h, 28))],
  ["a-name-of-my-own", null, (w, h) => Math.max(large(w, h), tilesBill(w, h, 85, 170))],
];

for (const [model, detail, bills] of billed) {
  Deno.test(`image bounds: never below what is billed: ${model}, ${detail ?? "no detail"}`, () =>
    always(
      300,
      fc.property(
        fc.integer({ min: 1, max: 8_000 }),
        fc.integer({ min: 1, max: 8_000 }),
        (width, height) => {
          const cost = bills(width, height);
          const bound = imageTokens(model, { size: { width, height }, detail });
          assert.ok(bound >= cost, `${width} by ${height}: ${bound} < ${cost}`);
          assert.equal(
            bound,
            imageTokens(model, { size: { width: height, height: width }, detail }),
          );
          const most = imageTokens(model, { size: null, detail });
          assert.ok(most >= bound, `${most} < ${bound}`);
        },
      ),
    ));
}

Deno.test("image bounds: a bound is not far above what is billed", () => {
  const sizes = [[512, 512], [1_024, 768], [1_920, 1_080], [4_032, 3_024]] as const;
  for (const [model, detail, bills] of billed) {
    if (/own|my-|grok|qwen|3-5-sonnet|latest/.test(model)) continue;
    for (const [width, height] of sizes) {
      const bound = imageTokens(model, { size: { width, height }, detail });
      const cost = bills(width, height);
      const isClose = bound <= cost * 1.35 + 10 || (model === "gpt-5.5" && detail === "low");
      assert.ok(isClose, `${model}, ${width} by ${height}: ${bound}, billed ${cost}`);
    }
  }
});

Deno.test("image bounds: an unknown detail is the dearest, and low never exceeds the default", () => {
  const size = { width: 3_000, height: 2_000 };
  for (const model of ["gpt-4o", "gpt-5.4", "gpt-5.5", "gpt-5.6-sol", "gpt-6-astra"]) {
    const tokens = (detail: string | null) => imageTokens(model, { size, detail });
    for (const detail of ["low", "high", "auto", "original", null]) {
      assert.ok(tokens("sharper") >= tokens(detail), `${model} ${detail}`);
    }
  }
});

Deno.test("image bounds: an image without an end of its headers has the most of any, after few steps", () => {
  const fill = (head: readonly number[], unit: readonly number[]) => [
    ...head,
    ...Array.from({ length: 200_000 }, (_, at) => unit[at % unit.length] ?? 0),
  ];
  const endless = {
    "JPEG of fill bytes": fill([0xff, 0xd8], [0xff]),
    "JPEG of bytes that are no markers": fill([0xff, 0xd8], [0xff, 0]),
    "JPEG of markers without a size": fill([0xff, 0xd8], [0xff, 0xd0]),
    "PNG of empty chunks": fill(pngStart, pngChunk("tEXt", [])),
    "GIF of bytes that are no blocks": fill([...tag("GIF89a"), ...le(1, 2), ...le(1, 2), 0, 0, 0], [
      1,
    ]),
    "GIF of blocks of one byte": fill(
      [...tag("GIF89a"), ...le(1, 2), ...le(1, 2), 0, 0, 0, 0x21, 0xfe],
      [1],
    ),
    "WebP of empty chunks": fill([...tag("RIFF"), 0, 0, 0, 0, ...tag("WEBP")], [
      ...tag("EXIF"),
      ...[0, 0, 0, 0],
    ]),
  };
  for (const [what, bytes] of Object.entries(endless)) {
    const work = createMediaWork();
    work.elements = 5_000;
    assert.equal(imageSize(base64(bytes), work), null, what);
    assert.ok(work.elements >= -1, `${what}: ${work.elements}`);
    const image_url = { url: `data:image/png;base64,${base64(bytes)}` };
    const part = { type: "image_url", image_url };
    assert.equal(mediaTokens(part, "gpt-4o", { work }), 1_445, what);
  }
});
