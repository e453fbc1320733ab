import assert from "node:assert/strict";
import { secondsByBytes, soundSecondsOf } from "../../src/pricing/media_length.ts";
import { createMediaWork } from "../../src/pricing/media_work.ts";
import { box, mp3, mp3FrameSeconds, wav } from "./files.ts";
import { be, le, tag } from "./image_headers.ts";
import {
  ebml,
  element,
  elementOfUnknownSize,
  mp4Sound,
  oggHead,
  oggPage,
  opusPacket20,
  soundTrack,
  stbl,
  webmTracks,
} from "./sound_files.ts";

const zeros = (count: number) => new Array<number>(count).fill(0);
const bytesOf = (...parts: (readonly number[])[]) => Uint8Array.from(parts.flat());
const inside = zeros(60_000);
const close = (actual: number, wanted: number) =>
  assert.ok(Math.abs(actual - wanted) < 0.001, `${actual}, not ${wanted}`);

/** Sizes and times in another table order than is usual, and a decoy of one frame. */
const decoy = soundTrack({ frames: 43, rateIndex: 4 });
const mvhd = (seconds: number) =>
  box("mvhd", [...zeros(12), ...be(1_000, 4), ...be(seconds * 1_000, 4), ...zeros(80)]);
const ftyp = box("ftyp", tag("M4A "));

/** Files that pretend to be short. By their bytes they have two minutes. */
const pretending: Record<string, Uint8Array> = {
  "MP4 with sizes before the codec, and a decoy of its sizes": mp4Sound({
    tables: stbl({ frames: 43, rateIndex: 4, order: ["stsz", "stsd", "stsz"] }),
    more: inside,
  }),
  "MP4 with two movies": bytesOf(ftyp, box("moov", decoy), box("moov", decoy), box("mdat", inside)),
  "MP4 whose movie is in fragments": bytesOf(
    ftyp,
    box("moov", decoy),
    box("moof", []),
    box("mdat", inside),
  ),
  "MP4 that announces fragments": bytesOf(
    ftyp,
    box("moov", [...decoy, ...box("mvex", [])]),
    box("mdat", inside),
  ),
  "MP4 with a track where metadata are": bytesOf(
    ftyp,
    box("moov", [...decoy, ...box("udta", decoy)]),
    box("mdat", inside),
  ),
  "MP4 with tables where none belong": bytesOf(
    ftyp,
    box("moov", [...decoy, ...box("stbl", stbl({ frames: 9_000, rateIndex: 4 }))]),
    box("mdat", inside),
  ),
  "MP4 with MP3 as its codec": mp4Sound({
    tables: stbl({ frames: 43, rateIndex: 4, objectType: 0x6b }),
    more: inside,
  }),
  "MP4 with bytes behind its boxes": bytesOf(ftyp, box("moov", decoy), box("mdat", inside), [
    1,
    2,
    3,
  ]),
  "MP4 with a box that is longer than the one around it": bytesOf(
    ftyp,
    [...be(8 + decoy.length, 4), ...tag("moov")],
    decoy.map((byte, at) => at === 1 ? 1 : byte),
    box("mdat", inside),
  ),
  "MP4 without a first box of its kind": bytesOf(box("moov", decoy), ftyp, box("mdat", inside)),
  "extensible WAV with MP3 inside": wav({ seconds: 2, format: 0xfffe, subformat: 0x55 }),
  "extensible WAV with a subformat of its own": wav({ seconds: 2, format: 0xfffe, guid: 7 }),
  "WAV with a second, compressed format": bytesOf(
    tag("RIFF"),
    le(0, 4),
    tag("WAVE"),
    fmt(1),
    fmt(0x55),
    tag("data"),
    le(60_000, 4),
    inside,
  ),
  "AVI with a format at its top": bytesOf(tag("RIFF"), le(0, 4), tag("AVI "), fmt(1), inside),
  "FLAC with a wrong number of samples": bytesOf(
    tag("fLaC"),
    [0x80, 0, 0, 34],
    [...zeros(10), 0x0a, 0xc4, 0x42, 0xf0, ...be(44_100, 4)],
    inside,
  ),
  "AIFF": bytesOf(
    tag("FORM"),
    be(60_000, 4),
    tag("AIFFCOMM"),
    be(18, 4),
    be(1, 2),
    be(8_000, 4),
    inside,
  ),
  "CAF": bytesOf(tag("caff"), be(65_536, 4), tag("desc"), be(0, 4), be(32, 4), inside),
  "AMR": bytesOf(tag("#!AMR\n"), inside),
  "ADTS": bytesOf([0xff, 0xf1, 0x50, 0x80], inside),
  "Ogg with a page inside of a page": bytesOf(
    oggHead(),
    oggPage(Array(200).fill([0x78, ...tag("OggS"), ...zeros(245)])),
  ),
  "Ogg with another stream beside": bytesOf(
    oggHead(),
    oggPage([tag("\x01vorbis--")], { first: true, serial: 2 }),
    ...Array(250).fill(oggPage([zeros(240)], { serial: 2 })),
    oggPage([opusPacket20]),
  ),
  "WebM with an element that nobody knows": bytesOf(
    ebml(),
    elementOfUnknownSize([0x18, 0x53, 0x80, 0x67]),
    webmTracks(),
    element([0x1f, 0x43, 0xb6, 0x75], element([0xa3], [0x81, 0, 0, 0x80, ...opusPacket20])),
    element([0x42, 0x11], inside),
  ),
  "WebM with a block where none belongs": bytesOf(
    ebml(),
    elementOfUnknownSize([0x18, 0x53, 0x80, 0x67]),
    webmTracks(),
    element([0xa3], [0x81, 0, 0, 0x80, 0x78, ...inside]),
  ),
  "WebM with compressed blocks": bytesOf(
    ebml(),
    elementOfUnknownSize([0x18, 0x53, 0x80, 0x67]),
    webmTracks(element([0x6d, 0x80], element([0x62, 0x40], []))),
    element([0x1f, 0x43, 0xb6, 0x75], element([0xa3], [0x81, 0, 0, 0x80, 0x78, ...inside])),
  ),
};

function fmt(format: number): number[] {
  return [
    ...[...tag("fmt "), ...le(16, 4), ...le(format, 2), ...le(2, 2), ...le(48_000, 4)],
    ...[...le(192_000, 4), ...le(4, 2), ...le(16, 2)],
  ];
}

for (const [what, file] of Object.entries(pretending)) {
  Deno.test(`forged sounds: ${what} counts by its bytes`, () => {
    assert.ok(file.length > 40_000, `${file.length}`);
    assert.equal(soundSecondsOf(file, ""), secondsByBytes(file.length));
    assert.equal(soundSecondsOf(file, "pcm16") >= file.length / 8_000, true);
  });
}

const frames = (seconds: number) => Math.round(seconds * 44_100 / 1_024);

/** Files whose readings differ: the longest counts. */
const longest: [string, Uint8Array, number][] = [
  ["MP4 whose movie header is longer", mp4Sound({ frames: frames(1), head: mvhd(600) }), 600],
  [
    "MP4 whose track header is longer",
    mp4Sound({ frames: frames(1), mediaSeconds: 600 }),
    600,
  ],
  ["MP4 whose samples last longer", mp4Sound({ frames: frames(1), sampleSeconds: 600 }), 600],
  [
    "MP4 that plays its track many times",
    mp4Sound({ frames: frames(1), head: mvhd(1), edits: Array(300).fill(2) }),
    600,
  ],
  ["MP4 with two tracks", mp4Sound({ frames: 441, tracks: 2 }), 2 * 441 * 1_024 / 44_100],
  ["MP4 whose header is shorter", mp4Sound({ frames: 441, head: mvhd(1) }), 441 * 1_024 / 44_100],
  ["MP4 with boxes of 64 bits", mp4Sound({ frames: 441, isLong: true }), 441 * 1_024 / 44_100],
  [
    "MP4 whose last box has no size",
    mp4Sound({ frames: 441, more: inside, endsOpen: true }),
    441 * 1_024 / 44_100,
  ],
  [
    "MP4 with several frames in a sample",
    mp4Sound({ frames: 10, sampleBytes: 40_000 }),
    10,
  ],
  [
    "WebM that states more",
    bytesOf(
      ebml(),
      elementOfUnknownSize([0x18, 0x53, 0x80, 0x67]),
      element([0x15, 0x49, 0xa9, 0x66], element([0x44, 0x89], [0x49, 0x12, 0x7c, 0])),
      webmTracks(),
      element([0x1f, 0x43, 0xb6, 0x75], element([0xa3], [0x81, 0, 0, 0x80, ...opusPacket20])),
    ),
    600,
  ],
  [
    "WebM whose clusters have no size",
    bytesOf(
      ebml(),
      elementOfUnknownSize([0x18, 0x53, 0x80, 0x67]),
      webmTracks(),
      ...Array(2).fill([
        ...elementOfUnknownSize([0x1f, 0x43, 0xb6, 0x75]),
        ...element([0xe7], [0]),
        ...Array(50).fill(element([0xa3], [0x81, 0, 0, 0x80, ...opusPacket20])).flat(),
      ]),
    ),
    2,
  ],
];
for (const [what, file, seconds] of longest) {
  Deno.test(`forged sounds: of ${what} the longest reading counts`, () =>
    close(soundSecondsOf(file, ""), seconds));
}

Deno.test("forged sounds: the packets of all streams of an Ogg file count", () => {
  const second = Array(50).fill(opusPacket20);
  const files = [
    bytesOf(oggHead(), oggPage(second), oggHead(), oggPage(second)),
    bytesOf(oggHead(), oggHead(2), oggPage(second), oggPage(second, { serial: 2 })),
  ];
  for (const file of files) {
    const seconds = soundSecondsOf(file, "");
    // Headers of the second stream count as packets.
    assert.ok(seconds >= 2 && seconds < 2.5, `${seconds}`);
  }
});

Deno.test("forged sounds: frames of MP3 count, whatever its header says", () => {
  for (const stated of [1, 100_000]) {
    const bytes = mp3(new Array(2_000).fill(8));
    bytes.set([...tag("Xing"), 0, 0, 0, 1, ...be(stated, 4)], 36);
    close(soundSecondsOf(bytes, ""), Math.max(2_000, stated) * mp3FrameSeconds);
  }
});

Deno.test("forged sounds: a frame of another kind hides no frames", () => {
  const small = mp3(new Array(900).fill(0));
  const large = [0xff, 0xfb, 0xe4, 0];
  // Of 48 kHz: a decoder skips it, and finds the frames that it covers.
  const bytes = bytesOf([...mp3([0])], large, [...small]);
  assert.ok(soundSecondsOf(bytes, "") >= 900 * mp3FrameSeconds);
});

Deno.test("forged sounds: a caller's format makes no sound shorter that is something else", () => {
  const [first = new Uint8Array()] = Object.values(pretending);
  for (const file of [first, bytesOf(tag("OggS"), inside), bytesOf(tag("fLaC"), inside)]) {
    assert.equal(soundSecondsOf(file, "pcm16"), secondsByBytes(file.length));
  }
  assert.equal(soundSecondsOf(bytesOf(inside), "pcm16"), 60_000 / 8_000);
});

Deno.test("forged sounds: reading ends when its allowance is used up, and the rest counts by bytes", () => {
  const mega = 2_000_000;
  const repeated = (unit: readonly number[]) =>
    Array(Math.ceil(mega / unit.length)).fill(unit).flat();
  const large: Record<string, Uint8Array> = {
    webm: bytesOf(ebml(), elementOfUnknownSize([0x18, 0x53, 0x80, 0x67]), repeated([0xec, 0x80])),
    mp4: bytesOf(ftyp, repeated(box("free", []))),
    ogg: bytesOf(oggHead(), repeated(oggPage([]))),
    wav: bytesOf(tag("RIFF"), le(0, 4), tag("WAVE"), repeated([...tag("JUNK"), 0, 0, 0, 0])),
    packets: bytesOf(oggHead(), repeated(oggPage(Array(255).fill([0x78])))),
  };
  for (const [what, file] of Object.entries(large)) {
    const work = createMediaWork();
    work.elements = 10_000;
    const seconds = soundSecondsOf(file, "", work);
    assert.ok(work.elements > -1_000, `${what}: ${work.elements}`);
    assert.ok(seconds > file.length / 500 * 0.5, `${what}: ${seconds}`);
  }
});

Deno.test("forged sounds: no change of a byte makes a file shorter than its frames or by much", () => {
  const file = mp4Sound({ frames: 441, head: mvhd(10) });
  const usual = soundSecondsOf(file, "");
  for (let at = 0; at < file.length; at++) {
    const changed = file.slice();
    changed[at] = (changed[at] ?? 0) ^ 0xff;
    assert.ok(Number.isFinite(soundSecondsOf(changed, "")));
  }
  assert.ok(usual >= 10);
});
