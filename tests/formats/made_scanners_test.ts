import assert from "node:assert/strict";
import fc from "fast-check";
import { TranscriptScanner } from "../../src/formats/audio/transcript_scanner.ts";
import { ImageScanner } from "../../src/formats/images/image_scanner.ts";
import type { ResponseScanner } from "../../src/inference/upstream_response.ts";
import { always } from "../support/property.ts";

const usage = { input_tokens: 3, output_tokens: 4, total_tokens: 7 };
const image = { revised_prompt: '"url": "x", "b64_json": "y"', b64_json: "A".repeat(90) };
const bodies: [string, () => ResponseScanner, string, unknown][] = [
  [
    "images",
    () => new ImageScanner(),
    JSON.stringify({ data: [image, image, image], size: "1024x1024", quality: "high", usage }),
    { images: { count: 3, size: "1024x1024", quality: "high" } },
  ],
  [
    "images in events",
    () => new ImageScanner(),
    ["partial_image", "completed"].map((what) => {
      const event = { type: `image_generation.${what}`, ...image, size: "512x512" };
      return `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`;
    }).join("").replace(
      '"size":"512x512"}\n\n',
      `"size":"512x512","usage":${JSON.stringify(usage)}}\n\n`,
    ),
    { images: { count: 1, size: "512x512", quality: null } },
  ],
  [
    "a transcript",
    () => new TranscriptScanner(),
    JSON.stringify({ text: '"duration": 9', duration: 8.470000267028809, words: [], usage }),
    { audioSeconds: 8.470000267028809 },
  ],
  [
    "a billed transcript",
    () => new TranscriptScanner(),
    JSON.stringify({ text: "Hi", usage: { type: "duration", seconds: 9 } }),
    { audioSeconds: 9 },
  ],
];
for (const [what, create, text, units] of bodies) {
  Deno.test(`scanners: ${what} are read alike, however they arrive`, () =>
    always(
      200,
      fc.property(fc.array(fc.nat(text.length), { maxLength: 60 }), (cuts) => {
        const scanner = create();
        let from = 0;
        for (const at of [...cuts.sort((one, other) => one - other), text.length]) {
          scanner.push(text.slice(from, at));
          from = at;
        }
        assert.deepEqual(scanner.units, units);
        assert.equal(scanner.usages.length, 1);
      }),
    ));
}
