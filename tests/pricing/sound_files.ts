import { box } from "./files.ts";
import { be, le, tag } from "./image_headers.ts";

const zeros = (count: number) => new Array<number>(count).fill(0);

/** A packet of Opus with one frame of 20 ms. */
export const opusPacket20 = [0x78, 1, 2];

/** A page of an Ogg file. */
export function oggPage(
  packets: readonly (readonly number[])[],
  { first = false, serial = 1 } = {},
): number[] {
  return [
    ...[...tag("OggS"), 0, first ? 2 : 0, ...zeros(8), ...le(serial, 4), ...zeros(8)],
    ...[packets.length, ...packets.map(({ length }) => length), ...packets.flat()],
  ];
}

/** The two header pages of Opus in Ogg. */
export const oggHead = (serial = 1): number[] => [
  ...oggPage([tag("OpusHead--")], { first: true, serial }),
  ...oggPage([tag("OpusTags")], { serial }),
];

/** An element of a WebM file. */
export const element = (id: readonly number[], content: readonly number[]): number[] => [
  ...id,
  0x10 | (content.length >> 24),
  ...be(content.length, 3),
  ...content,
];

/** The begin of an element whose size is not known, as recorders in browsers write it. */
export const elementOfUnknownSize = (id: readonly number[]): number[] => [
  ...id,
  0x01,
  ...new Array<number>(7).fill(0xff),
];

/** The begin of a WebM file. */
export const ebml = (): number[] => element([0x1a, 0x45, 0xdf, 0xa3], []);

/** One track of Opus. */
export const webmTracks = (more: readonly number[] = []): number[] =>
  element(
    [0x16, 0x54, 0xae, 0x6b],
    element([0xae], [...element([0x86], tag("A_OPUS")), ...more]),
  );

/** How the tables of a track are written. */
interface Tables {
  frames?: number;
  /** The index of the rate: 4 is 44.1 kHz. */
  rateIndex?: number;
  objectType?: number;
  sampleBytes?: number;
  /** How long all samples are, by their table. */
  sampleSeconds?: number;
  order?: readonly string[];
}

/** The tables of a track of AAC. */
export function stbl(
  { frames = 43, rateIndex = 4, objectType = 0x40, sampleBytes = 0, sampleSeconds = 0, order }:
    Tables,
): number[] {
  const config = [
    ...[objectType, 0x15, ...zeros(11)],
    ...[5, 2, 0x10 | (rateIndex >> 1), (rateIndex & 1) << 7],
  ];
  const esds = box("esds", [0, 0, 0, 0, 3, 25, 0, 1, 0, 4, 17, ...config, 6, 1, 2]);
  const sizes = new Array<number[]>(sampleBytes > 0 ? 0 : frames).fill(be(300, 4)).flat();
  const tables: Record<string, number[]> = {
    stsd: box("stsd", [0, 0, 0, 0, ...be(1, 4), ...box("mp4a", [...zeros(28), ...esds])]),
    stsz: box("stsz", [0, 0, 0, 0, ...be(sampleBytes, 4), ...be(frames, 4), ...sizes]),
    stts: box("stts", [0, 0, 0, 0, ...be(1, 4), ...be(1, 4), ...be(sampleSeconds * 1_000, 4)]),
  };
  return (order ?? ["stsd", "stts", "stsz"]).flatMap((name) => tables[name] ?? []);
}

/** A track of AAC. */
export function soundTrack(
  { mediaSeconds = 0, edits = [], tables, ...rest }:
    & Tables
    & { mediaSeconds?: number; edits?: readonly number[]; tables?: readonly number[] },
): number[] {
  const mdhd = box("mdhd", [
    ...zeros(12),
    ...be(1_000, 4),
    ...be(mediaSeconds * 1_000, 4),
    ...zeros(4),
  ]);
  const elst = edits.flatMap((seconds) => [...be(seconds * 1_000, 4), ...zeros(4), 0, 1, 0, 0]);
  return box("trak", [
    ...(edits.length > 0
      ? box("edts", box("elst", [0, 0, 0, 0, ...be(edits.length, 4), ...elst]))
      : []),
    ...box("mdia", [...mdhd, ...box("minf", box("stbl", tables ?? stbl(rest)))]),
  ]);
}

/** A file of AAC. */
export function mp4Sound(
  { tracks = 1, head = [], more = [], isLong = false, endsOpen = false, ...rest }:
    & Parameters<typeof soundTrack>[0]
    & {
      tracks?: number;
      /** The header of the movie. */
      head?: readonly number[];
      /** The content of its data. */
      more?: readonly number[];
      isLong?: boolean;
      endsOpen?: boolean;
    },
): Uint8Array {
  const content = [...head, ...new Array(tracks).fill(soundTrack(rest)).flat()];
  const moov = isLong
    ? [...be(1, 4), ...tag("moov"), ...be(0, 4), ...be(content.length + 16, 4), ...content]
    : box("moov", content);
  const mdat = endsOpen ? [...be(0, 4), ...tag("mdat"), ...more] : box("mdat", more);
  return Uint8Array.from([...box("ftyp", tag("M4A ")), ...moov, ...mdat]);
}
