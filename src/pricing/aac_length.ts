import { tagAt, viewOf } from "./image_size.ts";

// ISO 14496-12 and 14496-3

const parents = new Set(["moov", "trak", "mdia", "minf", "stbl"]);
/** Tracks that are no sound. */
const silent = new Set(["avc1", "hvc1", "hev1", "vp09", "av01", "tx3g", "text", "tmcd", "mp4s"]);
/** Hertz, by the index in the configuration of AAC. */
const rates = [
  ...[96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000],
  ...[12_000, 11_025, 8_000, 7_350],
];
const samplesPerFrame = 1_024;

/**
 * The seconds of an MP4 file with AAC: of all frames that its tables list, since a decoder reads no
 * others. Null for another file, a fragmented one, and other codecs.
 */
export function aacSeconds(bytes: Uint8Array): number | null {
  if (tagAt(bytes, 4) !== "ftyp") return null;
  let seconds = 0;
  let rate: number | null = null;
  for (let at = 0; at + 8 <= bytes.length;) {
    const view = viewOf(bytes);
    const type = tagAt(bytes, at + 4);
    const isLong = view.getUint32(at) === 1 && at + 16 <= bytes.length;
    const length = isLong ? Number(view.getBigUint64(at + 8)) : view.getUint32(at);
    const [from, end] = [at + 8, length === 0 ? bytes.length : at + length];
    if (length !== 0 && length < 8) return null;
    at = parents.has(type) ? from : end;
    if (type === "moof" || type === "stz2") return null;
    if (type === "stsd") {
      const codec = tagAt(bytes, from + 12);
      rate = codec === "mp4a" ? coreRate(bytes.subarray(from, Math.min(end, bytes.length))) : null;
      if (rate === null && !silent.has(codec)) return null;
    }
    if (type === "stsz" && rate !== null) {
      if (from + 12 > bytes.length) return null;
      seconds += view.getUint32(from + 8) * samplesPerFrame / rate;
      rate = null;
    }
  }
  return seconds === 0 ? null : seconds;
}

/** The rate of AAC's core decoder: of HE-AAC, half of the sound's. */
function coreRate(description: Uint8Array): number | null {
  const esds = new TextDecoder("latin1").decode(description).indexOf("esds");
  if (esds < 0) return null;
  for (let at = esds + 8; at < description.length; at++) {
    if (description[at] !== 5) continue;
    let content = at + 1;
    while (((description[content] ?? 0) & 0x80) !== 0) content++;
    const [first = 0, second = 0] = description.subarray(content + 1, content + 3);
    const object = first >> 3;
    if (object !== 2 && object !== 5 && object !== 29) continue;
    return rates[((first & 7) << 1) | (second >> 7)] ?? null;
  }
  return null;
}
