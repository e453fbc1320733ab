import assert from "node:assert/strict";
import { soundSecondsOf } from "../../src/pricing/media_length.ts";

const text = (chars: string) => Array.from(chars, (char) => char.charCodeAt(0));
const bigEndian = (value: number, length: number) =>
  Array.from({ length }, (_, at) => Math.floor(value / 256 ** (length - 1 - at)) % 256);
const littleEndian = (value: number, length: number) => bigEndian(value, length).reverse();
const close = (actual: number, wanted: number) =>
  assert.ok(Math.abs(actual - wanted) < 0.001, `${actual}, not ${wanted}`);

/** A packet of Opus with one frame of 20 ms. */
const packet20 = [0x78, 1, 2];
/** The same with three frames. */
const packet60 = [0x7b, 3, 2];

function page(packets: number[][], { first = false, samples = 0 } = {}): number[] {
  return [
    ...text("OggS"),
    ...[0, first ? 2 : 0],
    ...littleEndian(samples, 8),
    ...littleEndian(0, 12),
    packets.length,
    ...packets.map(({ length }) => length),
    ...packets.flat(),
  ];
}

const oggHead = [page([text("OpusHead--")], { first: true }), page([text("OpusTags")])].flat();
const ogg = (packets: number[][], samples = 0) =>
  Uint8Array.from([...oggHead, ...page(packets, { samples })]);

Deno.test("sound length: Opus in Ogg has the length of its packets, or of its clock", () => {
  close(soundSecondsOf(ogg(Array(50).fill(packet20)), ""), 1);
  close(soundSecondsOf(ogg(Array(50).fill(packet60)), ""), 3);
  close(soundSecondsOf(ogg(Array(50).fill(packet20), 48_000 * 7), ""), 7);
});

Deno.test("sound length: a packet of Opus counts as it is decoded, whatever its clock says", () => {
  close(soundSecondsOf(ogg(Array(200).fill(packet60), 1), ""), 12);
});

const element = (id: number[], content: number[]) => [
  ...id,
  0x10 | (content.length >> 24),
  ...bigEndian(content.length, 3),
  ...content,
];
const webm = (packets: number[][], { codec = "A_OPUS", at = 0, flags = 0x80 } = {}) =>
  Uint8Array.from([
    ...element([0x1a, 0x45, 0xdf, 0xa3], []),
    // Of unknown length, as recorders in browsers write it.
    ...[0x18, 0x53, 0x80, 0x67, 0x01, ...Array(7).fill(0xff)],
    ...element([0x16, 0x54, 0xae, 0x6b], element([0xae], element([0x86], text(codec)))),
    ...element([0x1f, 0x43, 0xb6, 0x75], [
      ...element([0xe7], bigEndian(at, 4)),
      ...packets.flatMap((one) => element([0xa3], [0x81, 0, 0, flags, ...one])),
    ]),
  ]);

Deno.test("sound length: Opus in WebM has the length of its packets, or of its clock", () => {
  close(soundSecondsOf(webm(Array(100).fill(packet20)), ""), 2);
  close(soundSecondsOf(webm([packet20], { at: 5_000 }), ""), 5.02);
});

const box = (type: string, content: number[]) => [
  ...bigEndian(content.length + 8, 4),
  ...text(type),
  ...content,
];
/** AAC-LC with this index of its rate. */
const esds = (rate: number) =>
  box("esds", [0, 0, 0, 0, 3, 22, 0, 0, 0, 4, 17, 0x40, 5, 2, 0x10 | (rate >> 1), (rate & 1) << 7]);
const mp4 = (frames: number, codec = "mp4a") =>
  Uint8Array.from([
    ...box("ftyp", text("M4A ")),
    ...box("moov", [
      ...box("mvhd", Array(100).fill(0)),
      ...box(
        "trak",
        box(
          "mdia",
          box(
            "minf",
            box("stbl", [
              ...box("stsd", [
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                1,
                ...box(codec, [...Array(28).fill(0), ...esds(4)]),
              ]),
              ...box("stsz", [0, 0, 0, 0, 0, 0, 0, 0, ...bigEndian(frames, 4)]),
            ]),
          ),
        ),
      ),
    ]),
  ]);

Deno.test("sound length: AAC in MP4 has the length of the frames in its tables", () => {
  close(soundSecondsOf(mp4(441), ""), 441 * 1_024 / 44_100);
});

const others: [string, Uint8Array][] = [
  ["another codec in Ogg", Uint8Array.from(page([text("\x01vorbis---")], { first: true }))],
  ["a damaged Ogg file", ogg(Array(50).fill(packet20)).subarray(0, 200)],
  ["garbage between its pages", Uint8Array.from([...oggHead, 0, ...page([packet20])])],
  ["another codec in WebM", webm([packet20], { codec: "A_VORBIS" })],
  ["laced WebM", webm([packet20], { flags: 0x82 })],
  ["a damaged WebM file", webm(Array(50).fill(packet20)).subarray(0, 200)],
  ["another codec in MP4", mp4(441, "alac")],
  ["MP4 without a frame", mp4(0)],
  ["no sound", Uint8Array.from(Array(5_000).fill(9))],
];
for (const [what, bytes] of others) {
  Deno.test(`sound length: ${what} is bounded by its bytes`, () => {
    assert.equal(soundSecondsOf(bytes, ""), bytes.length / 500);
  });
}

Deno.test("sound length: no start of a file makes it fail", () => {
  const files = [ogg(Array(9).fill(packet20)), webm(Array(9).fill(packet20)), mp4(9)];
  for (const file of files) {
    for (let length = 0; length < file.length; length++) {
      const seconds = soundSecondsOf(file.subarray(0, length), "");
      assert.ok(Number.isFinite(seconds) && seconds >= 0);
    }
  }
});
