import { tagAt, viewOf } from "./image_size.ts";

/** Milliseconds of a frame by the two lowest bits of its configuration: RFC 6716, 3.1. */
const silkFrames = [10, 20, 40, 60];
const celtFrames = [2.5, 5, 10, 20];
const packetMsMax = 120;
const samplesPerSecond = 48_000;

/** Milliseconds of the Opus packet that begins here. */
export function opusPacketMs(bytes: Uint8Array, at: number): number {
  const head = bytes[at] ?? 0;
  const configuration = head >> 3;
  const frames = configuration < 12 ? silkFrames : celtFrames;
  // The hybrid modes are those of SILK with 10 and 20 ms.
  const index = configuration >= 12 && configuration < 16
    ? 2 + (configuration & 1)
    : configuration & 3;
  const code = head & 3;
  const count = code === 0 ? 1 : code < 3 ? 2 : (bytes[at + 1] ?? 0) & 63;
  return Math.min(packetMsMax, count * (frames[index] ?? packetMsMax));
}

interface OggPage {
  /** Where its packets begin, and where it ends. */
  from: number;
  end: number;
  /** Lengths of their segments. */
  segments: Uint8Array;
  isFirst: boolean;
  isContinued: boolean;
  /** Samples up to its end. */
  position: number;
}

/**
 * The seconds of an Ogg file of Opus: of its packets, and by its own clock, whichever is longer.
 * Null for another file, and for one that is damaged. RFC 3533, RFC 7845.
 */
export function oggSeconds(bytes: Uint8Array): number | null {
  let [ms, samples, packets] = [0, 0, 0];
  for (let at = 0; at < bytes.length;) {
    const page = readPage(bytes, at);
    if (!page || (page.isFirst && tagAt(bytes, page.from) + tagAt(bytes, page.from + 4) !== head)) {
      return null;
    }
    for (const start of packetStarts(page)) {
      // The first two are headers.
      if (packets++ >= 2) ms += opusPacketMs(bytes, start);
    }
    samples = Math.max(samples, page.position);
    at = page.end;
  }
  return ms === 0 ? null : Math.max(ms / 1_000, samples / samplesPerSecond);
}
const head = "OpusHead";
const headerBytes = 27;

function readPage(bytes: Uint8Array, at: number): OggPage | null {
  if (tagAt(bytes, at) !== "OggS" || at + headerBytes > bytes.length) return null;
  const flags = bytes[at + 5] ?? 0;
  const from = at + headerBytes + (bytes[at + 26] ?? 0);
  const segments = bytes.subarray(at + headerBytes, from);
  const end = from + segments.reduce((sum, length) => sum + length, 0);
  const position = Number(viewOf(bytes).getBigInt64(at + 6, true));
  if (end > bytes.length || position > Number.MAX_SAFE_INTEGER) return null;
  return {
    ...{ from, end, segments, position },
    isFirst: (flags & 2) !== 0,
    isContinued: (flags & 1) !== 0,
  };
}

function* packetStarts({ from, segments, isContinued }: OggPage): Generator<number> {
  let at = from;
  let isStart = !isContinued;
  for (const length of segments) {
    if (isStart && length > 0) yield at;
    isStart = length < 255;
    at += length;
  }
}
