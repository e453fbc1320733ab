import { codeOf, viewOf } from "./image_size.ts";
import type { MediaWork } from "./media_work.ts";

/** Kilobits a second by the index in a header; 0 is not allowed. ISO 11172-3 and 13818-3. */
const bitrates = {
  "1": [
    [32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448],
    [32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384],
    [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
  ],
  "2": [
    [32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
    [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
  ],
} as const;
const sampleRates = [44_100, 48_000, 32_000];

/** The properties that all frames of a file have in common. */
interface FrameKind {
  version: number;
  layer: number;
  samples: number;
  rate: number;
}

/** Bits of a frame's second and third byte that are the same in all frames of a file. */
const kindBits = [0xfe, 0x0c] as const;
const noFrame = 0;

/** The length of the frame that begins here, in bytes; zero where there is none. */
function frameLength(bytes: Uint8Array, at: number): number {
  const second = bytes[at + 1] ?? 0;
  const third = bytes[at + 2] ?? 0;
  if (bytes[at] !== 0xff || (second & 0xe0) !== 0xe0) return noFrame;
  const version = (second >> 3) & 3;
  const layer = 4 - ((second >> 1) & 3);
  if (version === 1 || layer === 4) return noFrame;
  const isFirst = version === 3;
  const kilobits = bitrates[isFirst ? "1" : "2"][layer - 1]?.[(third >> 4) - 1];
  const baseRate = sampleRates[(third >> 2) & 3];
  if (kilobits === undefined || baseRate === undefined) return noFrame;
  const rate = baseRate / (isFirst ? 1 : version === 2 ? 2 : 4);
  const unit = layer === 1 ? 4 : 1;
  const bits = samplesOf(version, layer) / 8 / unit;
  return (Math.floor(bits * kilobits * 1_000 / rate) + ((third >> 1) & 1)) * unit;
}

function samplesOf(version: number, layer: number): number {
  return layer === 1 ? 384 : layer === 3 && version !== 3 ? 576 : 1_152;
}

/** The kind of a frame that begins here. */
function kindAt(bytes: Uint8Array, at: number): FrameKind {
  const second = bytes[at + 1] ?? 0;
  const version = (second >> 3) & 3;
  const layer = 4 - ((second >> 1) & 3);
  const rate = (sampleRates[((bytes[at + 2] ?? 0) >> 2) & 3] ?? 0) /
    (version === 3 ? 1 : version === 2 ? 2 : 4);
  return { version, layer, samples: samplesOf(version, layer), rate };
}

/** Bytes for each second of a sound that begins with a frame; null for another. */
export function mp3BytesPerSecond(start: Uint8Array): number | null {
  const at = afterTag(start);
  const length = frameLength(start, at);
  const { samples, rate } = kindAt(start, at);
  return length === noFrame ? null : length * rate / samples;
}

/** More bytes that are no frames are not searched one by one. */
const skippedBytesMax = 64 * 1024;

/**
 * The seconds of an MP3 file: of its frames, each of its own bitrate, or as many as its first frame
 * says that there are. Other bytes count as sound of `slowest` bytes a second, and so does a frame
 * of another kind than the first, which decoders skip. Null for another file.
 */
export function mp3Seconds(
  bytes: Uint8Array,
  { work, slowest }: { work: MediaWork; slowest: number },
): number | null {
  let at = afterTag(bytes);
  if (frameLength(bytes, at) === noFrame) return null;
  const kind = [(bytes[at + 1] ?? 0) & kindBits[0], (bytes[at + 2] ?? 0) & kindBits[1]] as const;
  const { samples, rate } = kindAt(bytes, at);
  const stated = statedFrames(bytes, at);
  let [frames, skipped] = [0, 0];
  while (at < bytes.length && skipped < skippedBytesMax && work.elements-- > 0) {
    const isSame = ((bytes[at + 1] ?? 0) & kindBits[0]) === kind[0] &&
      ((bytes[at + 2] ?? 0) & kindBits[1]) === kind[1];
    const length = isSame ? frameLength(bytes, at) : noFrame;
    if (length === noFrame) skipped++;
    else frames++;
    at += length || 1;
  }
  const rest = Math.max(0, bytes.length - at);
  return Math.max(frames, stated) * samples / rate + (skipped + rest) / slowest;
}

const [xing, info] = ["Xing", "Info"].map(codeOf);
/** Where the header of a file of variable bitrate begins in its first frame, by its kind. */
const xingAt = [13, 21, 36];

/** The number of frames that the first frame states; zero where it does not. */
function statedFrames(bytes: Uint8Array, at: number): number {
  const view = viewOf(bytes);
  for (const offset of xingAt) {
    const from = at + offset;
    if (from + 12 > bytes.length) break;
    const code = view.getUint32(from);
    const hasFrames = (view.getUint32(from + 4) & 1) !== 0;
    if ((code === xing || code === info) && hasFrames) return view.getUint32(from + 8);
  }
  return 0;
}

function isId3(bytes: Uint8Array): boolean {
  return bytes[0] === 0x49 && bytes[1] === 0x44 && bytes[2] === 0x33;
}

/** More zeros after a tag are no padding. */
const paddingBytesMax = 16 * 1024;

/** Where the sound begins: behind a tag, if frames follow it. https://id3.org/id3v2.4.0-structure */
function afterTag(bytes: Uint8Array): number {
  if (!isId3(bytes)) return 0;
  let size = 0;
  for (let at = 6; at < 10; at++) size = size * 128 + ((bytes[at] ?? 0) & 0x7f);
  const footer = ((bytes[5] ?? 0) & 0x10) === 0 ? 0 : 10;
  const from = 10 + size + footer;
  let at = from;
  while (bytes[at] === 0 && at - from < paddingBytesMax) at++;
  return frameLength(bytes, at) === noFrame ? 0 : at;
}
