import assert from "node:assert/strict";
import fc from "fast-check";
import type { JsonObject } from "../../src/base/json.ts";
import { hasKnownSize, mediaTokens } from "../../src/pricing/media_tokens.ts";
import { assertGrowth } from "../support/growth.ts";
import { always } from "../support/property.ts";
import { box, deflated, mp3, mp3FrameSeconds, pdf, pdfStream, wav } from "./files.ts";
import { base64, be, imageHeaders, le, tag } from "./image_headers.ts";

const file = (bytes: Uint8Array, type = "application/pdf") => ({
  type: "file",
  file: { file_data: `data:${type};base64,${bytes.toBase64()}`, filename: "a.pdf" },
});
const document = (bytes: Uint8Array, type = "application/pdf") => ({
  type: "document",
  source: { type: "base64", media_type: type, data: bytes.toBase64() },
});
const sound = (bytes: Uint8Array, format: string) => ({
  type: "input_audio",
  input_audio: { data: bytes.toBase64(), format },
});

/** What a page costs at most: the image that a provider draws of it, and its text. */
const pageImages: [string, number][] = [
  ["claude-sonnet-4-5", 1_572],
  ["claude-opus-5", 4_787],
  ["gpt-4o", 765],
  ["gpt-5.6-sol", 3_000],
];

for (const inStreams of [false, true]) {
  Deno.test(`file bounds: pages of a PDF are counted${inStreams ? " in object streams" : ""}`, () =>
    always(
      40,
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 0, max: 6_000 }),
        fc.constantFrom(...pageImages),
        (pages, chars, [model, image]) => {
          const text = "lorem ipsum ".repeat(chars / 12);
          const bound = mediaTokens(file(pdf({ pages, text, inStreams })), model);
          const billed = pages * (image + text.length / 4);
          assert.ok(bound >= billed, `${bound} < ${billed}`);
          assert.ok(bound <= pages * (4_800 + 6_100) + 100, `${bound}`);
          const other = mediaTokens(document(pdf({ pages, text, inStreams })), model);
          assert.ok(Math.abs(other - bound) < 10, `${other}`);
        },
      ),
    ));
}

Deno.test("file bounds: a page that was changed later does not hide those in object streams", () => {
  const changed = "10 0 obj\n<< /Type /Page /Parent 2 0 R >>\nendobj\n";
  const bound = mediaTokens(file(pdf({ pages: 30, inStreams: true, more: [changed] })), "gpt-4o");
  assert.ok(bound >= 30 * 765, `${bound}`);
});

Deno.test("file bounds: Gemini's pages cost less", () => {
  const bytes = pdf({ pages: 10, inStreams: true });
  assert.ok(mediaTokens(file(bytes), "gemini-2.5-flash") >= 2_580);
  assert.ok(mediaTokens(file(bytes), "gemini-3-pro-preview") >= 11_200);
  assert.ok(mediaTokens(file(bytes), "gemini-flash-latest") >= 11_200);
  assert.ok(mediaTokens(file(bytes), "gemini-3-pro-preview") <= 20_010);
});

Deno.test("file bounds: images in a PDF do not count by their bytes", () => {
  const bound = mediaTokens(file(pdf({ pages: 2, imageBytes: 300_000 })), "claude-sonnet-4-5");
  assert.ok(bound < 2 * 6_000, `${bound}`);
});

/** Files that hide what they have. `text` is what a reader finds. */
const hidden = "hidden ".repeat(50_000);
const content = pdfStream(900, "/Filter /FlateDecode", deflated(`BT (${hidden}) Tj ET`));
const objects = deflated("10 0 << /Type /Page >> ".repeat(300));
const hostile: Record<string, [Uint8Array, number]> = {
  "much text on one page": [pdf({ pages: 1, more: content }), hidden.length / 7],
  "text that is not compressed": [
    pdf({ pages: 1, more: pdfStream(900, "", new TextEncoder().encode(`(${hidden})`)) }),
    hidden.length / 7,
  ],
  "a word as the begin of a stream": [
    pdf({
      pages: 0,
      more: ["1 0 obj (stream\n) endobj 2 0 obj << /Type /Page >> endobj\n".repeat(9)],
    }),
    9 * 765,
  ],
  "page names in disguise": [
    pdf({ pages: 1, more: ["<< /Type /P#61ge >>\n".repeat(500)] }),
    5_000,
  ],
  "an object stream behind a comment": [
    pdf({
      pages: 1,
      more: [
        "7 0 obj\n<< /Type /ObjStm /Filter /FlateDecode >> %\nstream\n",
        objects,
        "\nendstream\n",
      ],
    }),
    500,
  ],
  "an object stream with another filter": [
    pdf({
      pages: 1,
      more: pdfStream(7, "/Type /ObjStm /Filter /LZWDecode", new Uint8Array(9_000)),
    }),
    9_000,
  ],
  "an encrypted file": [pdf({ pages: 1, more: ["/Encrypt 9 0 R", "x".repeat(9_000)] }), 9_000],
  "one page many times": [
    pdf({ pages: 1, more: [`<< /Type /Pages /Kids [${"10 0 R ".repeat(400)}] /Count 1 >>\n`] }),
    400 * 765,
  ],
  "a stream that grows a thousand times": [
    pdf({
      pages: 1,
      more: pdfStream(900, "/Filter /FlateDecode", deflated("(".repeat(12_000_000))),
    }),
    10_000,
  ],
  "megabytes that are no pages": [
    pdf({ pages: 1, more: pdfStream(9, "/Subtype /Image", new Uint8Array(5_000_000)) }),
    10_000,
  ],
  "no page at all": [new TextEncoder().encode(`%PDF-1.4\n${"x".repeat(50_000)}`), 50_000],
  "bytes before the header": [
    new Uint8Array([...new Uint8Array(900).fill(10), ...pdf({ pages: 30, inStreams: true })]),
    30 * 765,
  ],
};
for (const [name, [bytes, least]] of Object.entries(hostile)) {
  Deno.test(`file bounds: a PDF cannot hide what it costs: ${name}`, () => {
    for (const model of ["gpt-4o", "claude-sonnet-4-5"]) {
      const bound = mediaTokens(file(bytes), model);
      assert.ok(bound >= least, `${model}: ${bound} < ${least}`);
    }
  });
}

Deno.test("file bounds: reading a PDF of 15 MB takes time in proportion to it, whatever is in it", async () => {
  const hostile = [
    "/Kids [",
    "<< >>\nstream\n",
    "<< >>\nstream\nendstream ",
    `/Type${" ".repeat(100)}`,
    "/#41",
  ];
  for (const unit of hostile) {
    // Only so much outside of streams is read: up to there, and beyond.
    for (const size of [900_000, 3_750_000]) {
      await assertGrowth((bytes) => {
        const part = file(pdf({ pages: 1, more: [unit.repeat(bytes / unit.length)] }));
        // A part that was read is remembered.
        return () => mediaTokens({ ...part }, "gpt-4o");
      }, { size, what: `${size} of ${unit}` });
    }
  }
});

Deno.test("file bounds: of streams that grow, however many, only so much is inflated", async () => {
  const growing = deflated("(".repeat(1_000_000));
  await assertGrowth((length) => {
    const streams = Array.from(
      { length },
      (_, at) => pdfStream(at, "/Filter /FlateDecode", growing),
    );
    const part = file(pdf({ pages: 1, more: streams.flat() }));
    return () => mediaTokens({ ...part }, "gpt-4o");
  }, { size: 225, growth: "none" });
});

Deno.test("file bounds: any bytes are read, and never cost nothing", () =>
  always(
    500,
    fc.property(fc.uint8Array({ minLength: 1, maxLength: 600 }), fc.nat(20), (noise, at) => {
      const start = pdf({ pages: 1 }).subarray(0, 40 * at);
      const bytes = new Uint8Array([...start, ...noise]);
      for (const part of [file(bytes), sound(bytes, "wav"), sound(bytes, "mp3")]) {
        const bound = mediaTokens(part, "gpt-4o");
        assert.ok(Number.isInteger(bound) && bound > 0, `${bound}`);
      }
    }),
  ));

const rates: [string, number][] = [["gemini-2.5-flash", 32], ["gpt-4o-audio-preview", 10], [
  "voxtral-small",
  12.5,
]];
for (const [model, perSecond] of rates) {
  Deno.test(`file bounds: a WAV file is bounded by its samples, whatever its header says: ${model}`, () =>
    always(
      60,
      fc.property(
        fc.integer({ min: 1, max: 60 }),
        fc.record({
          rate: fc.constantFrom(8_000, 16_000, 44_100),
          channels: fc.constantFrom(1, 2),
          bits: fc.constantFrom(8, 16, 24),
          format: fc.constantFrom(1, 3, 0xfffe),
          dataSize: fc.constantFrom(0, 7, 0xffffffff),
          byteRate: fc.constantFrom(0, 4_000_000_000),
          before: fc.constantFrom(0, 28, 4_000),
          magic: fc.constantFrom("RIFF", "RF64"),
        }),
        (seconds, options) => {
          const bound = mediaTokens(sound(wav({ seconds, ...options }), "wav"), model);
          assert.ok(bound >= seconds * perSecond, `${bound} for ${seconds} s`);
          if (perSecond === 32) assert.ok(bound <= (seconds + 1) * 32 + 30, `${bound}`);
        },
      ),
    ));
}

Deno.test("file bounds: a WAV file that is compressed, or has no format, counts by its bytes", () => {
  const bytes = wav({ seconds: 5, format: 0x55, byteRate: 4_000_000_000 });
  const bound = mediaTokens(sound(bytes, "wav"), "gemini-2.5-flash");
  assert.ok(bound >= bytes.length / 1_000 * 32, `${bound}`);
  const none = Uint8Array.from([
    ...tag("RIFF"),
    ...le(9, 4),
    ...tag("WAVE"),
    ...new Array(9_000).fill(0),
  ]);
  assert.ok(mediaTokens(sound(none, "wav"), "gemini-2.5-flash") >= 9 * 32);
});

Deno.test("file bounds: an MP3 file is bounded by its frames, at constant and variable bitrates", () =>
  always(
    40,
    fc.property(
      fc.array(fc.nat(13), { minLength: 3, maxLength: 300 }),
      fc.constantFrom(0, 1_000, 200_000),
      fc.constantFrom(0, 128),
      (bitrates, tagBytes, tail) => {
        const bytes = mp3(bitrates, { tagBytes, tail });
        const seconds = bitrates.length * mp3FrameSeconds;
        const bound = mediaTokens(sound(bytes, "mp3"), "gemini-2.5-flash");
        assert.ok(bound >= seconds * 32, `${bound} for ${seconds} s`);
        assert.ok(bound <= (seconds + 0.5) * 32 + 2, `${bound} for ${seconds} s`);
      },
    ),
  ));

Deno.test("file bounds: a tag that covers the whole of an MP3 file hides nothing", () => {
  const bytes = mp3(new Array(2_000).fill(0));
  const hiding = new Uint8Array([...tag("ID3"), 4, 0, 0, 0x7f, 0x7f, 0x7f, 0x7f, ...bytes]);
  const bound = mediaTokens(sound(hiding, "mp3"), "gemini-2.5-flash");
  assert.ok(bound >= 2_000 * mp3FrameSeconds * 32, `${bound}`);
});

Deno.test("file bounds: a character that is no base64 does not hide what follows", () => {
  const data = mp3(new Array(2_000).fill(5)).toBase64();
  const broken = `${data.slice(0, 200_000)}*${data.slice(200_000)}`;
  const part = { type: "input_audio", input_audio: { data: broken, format: "mp3" } };
  assert.ok(mediaTokens(part, "gemini-2.5-flash") >= 2_000 * mp3FrameSeconds * 32);
  const paper = file(pdf({ pages: 30, inStreams: true }));
  paper.file.file_data = paper.file.file_data.replace(/.{100}$/, "*$&");
  assert.ok(mediaTokens(paper, "gpt-4o") >= 5_000);
});

Deno.test("file bounds: other sounds count by their bytes, as slow as speech is stored", () => {
  const bytes = new Uint8Array(65_000).fill(9);
  // 100 seconds of AMR.
  assert.ok(mediaTokens(sound(bytes, "amr"), "gemini-2.5-flash") >= 3_200);
});

Deno.test("file bounds: text beside and inside a document counts by its bytes", () => {
  const text = "wörd ".repeat(1_000);
  const parts: JsonObject[] = [
    { type: "document", source: { type: "text", media_type: "text/plain", data: text } },
    { type: "document", source: { type: "content", content: [{ type: "text", text }] } },
    { ...document(new TextEncoder().encode("a,b")), context: text },
    { ...file(new TextEncoder().encode("a,b")), title: text },
    { type: "file", file: { file_data: `data:text/plain,${text}` } },
    { type: "tool_result", tool_use_id: "x", content: [{ type: "text", text }] },
  ];
  for (const part of parts) {
    const bound = mediaTokens(part, "claude-sonnet-4-5");
    assert.ok(bound >= 6_000 && bound < 6_200, `${JSON.stringify(part).slice(0, 80)}: ${bound}`);
  }
});

Deno.test("file bounds: content is what it is, not what the part calls it", () => {
  const png = Uint8Array.from(imageHeaders.png?.(4_000, 3_000) ?? []);
  const paper = pdf({ pages: 20, inStreams: true });
  const url = (bytes: Uint8Array, type: string) => ({
    type: "image_url",
    image_url: { url: `data:${type};base64,${bytes.toBase64()}` },
  });
  const source = { type: "base64", media_type: "image/png", data: base64(png) };
  const cases: [JsonObject, number][] = [
    [file(png, "image/png"), 1_568],
    [file(png, "application/octet-stream"), 1_568],
    [url(paper, "application/pdf"), 20 * 1_568],
    [url(paper, "image/png"), 20 * 1_568],
    [{ inline_data: { mime_type: "image/png", data: base64(png) } }, 1_568],
    [{ inlineData: { mimeType: "application/pdf", data: paper.toBase64() } }, 20 * 1_568],
    [
      { type: "tool_result", content: [{ type: "image", source }, { type: "image", source }] },
      3_136,
    ],
  ];
  for (const [part, least] of cases) {
    const bound = mediaTokens(part, "claude-sonnet-4-5");
    assert.ok(bound >= least && bound < 200_000, `${JSON.stringify(part).slice(0, 80)}: ${bound}`);
  }
});

/** Content that is not in the part. */
const elsewhere: JsonObject[] = [
  { type: "file", file: { file_id: "file-1" } },
  { type: "input_file", file_url: "https://files.example/a.pdf" },
  { type: "document", source: { type: "url", url: "https://files.example/a.pdf" } },
  { type: "document", source: { type: "url", url: " HTTPS://files.example/a.pdf" } },
  { type: "document", source: { type: "file", file_id: "file-1" } },
  { type: "file", file: { file_data: "gs://bucket/a.pdf" } },
  { type: "file", file: { file_data: file(pdf({ pages: 1 })).file.file_data, file_id: "file-1" } },
  { type: "input_audio", input_audio: { data: "https://files.example/a.mp3", format: "mp3" } },
  { type: "video_url", video_url: { url: "https://files.example/a.mp4" } },
  { type: "video", video: ["https://files.example/1.jpg"] },
  { type: "tool_result", content: [{ type: "document", source: { type: "file", file_id: "f" } }] },
  { fileData: { fileUri: "gs://bucket/a.pdf", mimeType: "application/pdf" } },
  file(Uint8Array.from([...tag("PK\x03\x04"), ...new Array(50).fill(0)]), "application/zip"),
];
for (const part of elsewhere) {
  Deno.test(`file bounds: of unknown size, it may fill the context window: ${JSON.stringify(part).slice(0, 70)}`, () => {
    assert.equal(hasKnownSize(part), false);
    assert.equal(mediaTokens(part, "gpt-4o"), 1_048_576);
    assert.equal(mediaTokens(part, "gpt-4o", { contextWindow: 128_000 }), 128_000);
  });
}

Deno.test("file bounds: an image elsewhere has the most of any image at its detail", () => {
  const url = "https://pictures.example/1.png";
  const cases: [JsonObject, number][] = [
    [{ type: "image_url", image_url: { url } }, 1_445],
    [{ type: "image_url", image_url: { url, detail: "low" } }, 85],
    [{ type: "input_image", image_url: url, detail: "low" }, 85],
    [{ type: "image_url", image_url: { url }, detail: "low" }, 1_445],
    [{ type: "input_image", file_id: "file-1" }, 1_445],
    [{ type: "image", source: { type: "file", file_id: "file-1" } }, 1_445],
  ];
  for (const [part, tokens] of cases) {
    assert.equal(mediaTokens(part, "gpt-4o"), tokens, JSON.stringify(part));
    assert.ok(hasKnownSize(part));
  }
});

Deno.test("file bounds: Gemini's highest resolution is seen wherever it is asked for", () => {
  const image_url = { url: `data:image/png;base64,${base64(imageHeaders.png?.(9, 9) ?? [])}` };
  const asked: JsonObject[] = [
    { type: "image_url", image_url, media_resolution: "MEDIA_RESOLUTION_ULTRA_HIGH" },
    { type: "image_url", image_url, media_resolution: { level: "media_resolution_ultra_high" } },
    { type: "image_url", image_url: { ...image_url, detail: "ultra_high" } },
  ];
  for (const part of asked) assert.equal(mediaTokens(part, "gemini-3-flash"), 2_240);
});

Deno.test("file bounds: a film counts by its headers, else by its bytes", () => {
  const mvhd = (seconds: number) =>
    box("mvhd", [...be(0, 12), ...be(1_000, 4), ...be(seconds * 1_000, 4)]);
  const film = (bytes: number[], more = {}) => ({
    type: "video_url",
    video_url: { url: `data:video/mp4;base64,${base64(bytes)}`, ...more },
  });
  const data = box("mdat", new Array(600_000).fill(1));
  const head = box("ftyp", [...tag("isom")]);
  const bytes = [...head, ...data, ...box("moov", mvhd(10))];
  assert.equal(mediaTokens(film(bytes), "gemini-3-flash"), 3_321);
  assert.equal(mediaTokens(film(bytes, { fps: 4 }), "gemini-3-flash"), 13_281);
  assert.ok(mediaTokens(film(new Array(100_000).fill(1)), "gemini-3-flash") >= 2_600);
  const byBytes = 600_000 / 12_500 * 332;
  const decoys = [
    [...head, ...box("mdat", [...mvhd(1), ...new Array(600_000).fill(1)])],
    [...head, ...box("free", mvhd(1)), ...data],
    [...head, ...data, ...box("moov", [...mvhd(1), ...mvhd(500)])],
    [...head, ...data, ...box("moov", mvhd(1)), ...box("moov", mvhd(500))],
    [...head, ...data, ...box("moov", [...mvhd(1), ...box("mvex", [])]), ...box("moof", [])],
    [...head, ...data, ...box("moov", mvhd(1)), 1, 2, 3],
    [...data, ...box("moov", mvhd(1))],
  ];
  for (const [at, decoy] of decoys.entries()) {
    assert.ok(mediaTokens(film(decoy), "gemini-3-flash") >= byBytes, `${at}`);
  }
});
