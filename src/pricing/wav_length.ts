import { codeOf, viewOf } from "./image_size.ts";
import type { MediaWork } from "./media_work.ts";

const [riff, rf64, bw64] = ["RIFF", "RF64", "BW64"].map(codeOf);
const [wave, format, data] = ["WAVE", "fmt ", "data"].map(codeOf);
/** PCM, floats, A-law and mu-law: every sample has the same size. */
const uncompressed = new Set([1, 3, 6, 7]);
/** The format's tag is the begin of a GUID, whose other bytes are these. */
const extensible = 0xfffe;
const guidAt = 24;
const restOfGuid = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, 0x71];

/**
 * The seconds of a WAV file without compression: all of its bytes, at the slowest rate that its
 * headers allow. Lengths that it states are not believed: recorders and streams leave them at 0 or
 * at the maximum. Null for another file, and for one whose samples are compressed.
 */
export function wavSeconds(bytes: Uint8Array, work: MediaWork): number | null {
  const rate = wavBytesPerSecond(bytes, work);
  return rate === null ? null : bytes.length / rate;
}

/** Bytes for each second, at least; null where headers do not say. */
export function wavBytesPerSecond(bytes: Uint8Array, work: MediaWork): number | null {
  const view = viewOf(bytes);
  if (bytes.length < 20 || view.getUint32(8) !== wave) return null;
  const magic = view.getUint32(0);
  if (magic !== riff && magic !== rf64 && magic !== bw64) return null;
  let slowest: number | null = null;
  for (let at = 12; at + 8 <= bytes.length;) {
    if (work.elements-- <= 0) return null;
    const [type, length] = [view.getUint32(at), view.getUint32(at + 4, true)];
    if (type === format) {
      const rate = rateAt(view, at + 8, length);
      if (rate === null) return null;
      slowest = Math.min(slowest ?? rate, rate);
    }
    // What follows is sound, also where a header states no length.
    if (type === data) return slowest;
    at += 8 + length + length % 2;
  }
  return null;
}

/** The slowest rate that a format allows; null for one that is compressed. */
function rateAt(view: DataView, from: number, length: number): number | null {
  if (length < 16 || from + length > view.byteLength) return null;
  const stated = view.getUint16(from, true);
  const tag = stated === extensible ? tagOfGuid(view, from, length) : stated;
  if (tag === null || !uncompressed.has(tag)) return null;
  const samples = view.getUint32(from + 4, true);
  const [channels, bits] = [view.getUint16(from + 2, true), view.getUint16(from + 14, true)];
  const bytesPerSecond = view.getUint32(from + 8, true);
  const byBlock = samples * view.getUint16(from + 12, true);
  const rates = [samples * channels * Math.ceil(bits / 8), byBlock, bytesPerSecond];
  const rate = Math.min(...rates.filter((one) => one > 0));
  return Number.isFinite(rate) ? rate : null;
}

function tagOfGuid(view: DataView, from: number, length: number): number | null {
  // Without a GUID no decoder knows a format but PCM.
  if (length < guidAt + 16) return 1;
  const isUsual = restOfGuid.every((byte, at) => view.getUint8(from + guidAt + 2 + at) === byte);
  return isUsual ? view.getUint16(from + guidAt, true) : null;
}
