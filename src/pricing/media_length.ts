import { aacSeconds } from "./aac_length.ts";
import { oggSeconds } from "./opus_length.ts";
import { webmSeconds } from "./webm_length.ts";
import { firstBytes, tagAt, viewOf } from "./image_size.ts";

/** AMR and Opus make speech this small. */
const slowestBytesPerSecond = 500;
/** G.711, the smallest of the formats without a header. */
const rawBytesPerSecond = 8_000;
/** Headers of a sound are searched for in its first bytes. */
const headerBytes = 64 * 1024;

/** Bytes of base64 data, at most. */
export function bytesOfBase64(base64: string): number {
  return Math.ceil(base64.length * 3 / 4);
}

/**
 * A bound on the seconds of a sound in base64: by the header of a WAV file, the frames of an MP3
 * file, else by its bytes. `format` is the caller's, in small letters.
 */
export function soundSeconds(base64: string, format: string): number {
  const bytes = bytesOfBase64(base64);
  const start = firstBytes(base64, headerBytes);
  // Some decoders skip what is no base64.
  const whole = () => firstBytes(base64, bytes);
  return secondsOf({ bytes, start, whole }, format);
}

/** The same of a file's bytes; also by the packets of Opus in Ogg and WebM, and of AAC in MP4. */
export function soundSecondsOf(file: Uint8Array, format: string): number {
  const sound = { bytes: file.length, start: file.subarray(0, headerBytes), whole: () => file };
  return oggSeconds(file) ?? webmSeconds(file) ?? aacSeconds(file) ?? secondsOf(sound, format);
}

interface Sound {
  bytes: number;
  start: Uint8Array;
  whole(): Uint8Array;
}

function secondsOf({ bytes, start, whole: decoded }: Sound, format: string): number {
  const tag = tagAt(start, 0);
  if (["RIFF", "RF64", "BW64"].includes(tag)) return bytes / wavBytesPerSecond(start);
  const isMp3 = tag.startsWith("ID3") || frameAt(start, 0) !== null;
  const whole = isMp3 ? decoded() : start;
  if (isMp3 && whole.length > 0) return mp3Seconds(whole);
  const isRaw = format.startsWith("pcm") || format.startsWith("g711");
  return bytes / (isRaw ? rawBytesPerSecond : slowestBytesPerSecond);
}

/** Samples of 16 bits at 24 kHz: what servers make where PCM is asked for. */
const pcmBytesPerSecond = 48_000;

/** Bytes a second of a sound that begins so: of WAV, MP3 and PCM; null for others. */
export function bytesPerSecond(start: Uint8Array, format: string): number | null {
  if (format.startsWith("pcm")) return pcmBytesPerSecond;
  if (tagAt(start, 0) === "RIFF") return wavBytesPerSecond(start);
  const frame = frameAt(start, afterTag(start));
  return frame && frame.bytes / frame.seconds;
}

/** Tags of PCM, floats, A-law, µ-law and extended headers: every sample has the same size. */
const uncompressed = new Set([1, 3, 6, 7, 0xfffe]);

/**
 * The slowest rate that the header of a WAV file allows. Its lengths are not read: recorders and
 * streams leave them at 0 or at the maximum.
 */
function wavBytesPerSecond(bytes: Uint8Array): number {
  const view = viewOf(bytes);
  for (let at = 12; at + 24 <= bytes.length;) {
    const length = view.getUint32(at + 4, true);
    if (tagAt(bytes, at) === "fmt ") {
      if (!uncompressed.has(view.getUint16(at + 8, true))) return slowestBytesPerSecond;
      const samples = view.getUint32(at + 12, true);
      const [channels, bits] = [view.getUint16(at + 10, true), view.getUint16(at + 22, true)];
      const stated = view.getUint32(at + 16, true);
      const byBlock = samples * view.getUint16(at + 20, true);
      const rates = [samples * channels * Math.ceil(bits / 8), byBlock, stated];
      const rate = Math.min(...rates.filter((one) => one > 0));
      return Number.isFinite(rate) ? rate : slowestBytesPerSecond;
    }
    at += 8 + length + length % 2;
  }
  return slowestBytesPerSecond;
}

interface Frame {
  bytes: number;
  seconds: number;
}

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

/** The frame of MPEG audio whose header is here; null where there is none. */
function frameAt(bytes: Uint8Array, at: number): Frame | null {
  const [first, second, third] = [bytes[at], bytes[at + 1], bytes[at + 2]];
  if (first !== 0xff || second === undefined || third === undefined) return null;
  const version = (second >> 3) & 3;
  const layer = 4 - ((second >> 1) & 3);
  if ((second & 0xe0) !== 0xe0 || version === 1 || layer === 4) return null;
  const isFirst = version === 3;
  const kilobits = bitrates[isFirst ? "1" : "2"][layer - 1]?.[(third >> 4) - 1];
  const baseRate = sampleRates[(third >> 2) & 3];
  if (kilobits === undefined || baseRate === undefined) return null;
  const rate = baseRate / (isFirst ? 1 : version === 2 ? 2 : 4);
  const samples = layer === 1 ? 384 : layer === 3 && !isFirst ? 576 : 1_152;
  const padding = (third >> 1) & 1;
  const unit = layer === 1 ? 4 : 1;
  const length = Math.floor(samples / 8 / unit * kilobits * 1_000 / rate) + padding;
  return { bytes: length * unit, seconds: samples / rate };
}

/** More bytes that are no frames are not searched one by one. */
const skippedBytesMax = 64 * 1024;

/** The frames of an MP3 file, each of its own bitrate. Other bytes count as slow sound. */
function mp3Seconds(bytes: Uint8Array): number {
  let seconds = 0;
  let skipped = 0;
  let at = afterTag(bytes);
  while (at < bytes.length && skipped < skippedBytesMax) {
    const frame = frameAt(bytes, at);
    if (frame) seconds += frame.seconds;
    else skipped++;
    at += frame?.bytes ?? 1;
  }
  const rest = Math.max(0, bytes.length - at);
  return seconds + (skipped + rest) / slowestBytesPerSecond;
}

/** Where the sound begins: behind a tag, if frames follow it. https://id3.org/id3v2.4.0-structure */
function afterTag(bytes: Uint8Array): number {
  if (!tagAt(bytes, 0).startsWith("ID3")) return 0;
  const size = [6, 7, 8, 9].reduce((sum, at) => sum * 128 + ((bytes[at] ?? 0) & 0x7f), 0);
  const footer = ((bytes[5] ?? 0) & 0x10) === 0 ? 0 : 10;
  let at = 10 + size + footer;
  while (bytes[at] === 0) at++;
  return frameAt(bytes, at) ? at : 0;
}

/** Without a length of its own, a film is bounded by what recordings of a screen have. */
const slowFilmBytesPerSecond = 12_500;
/** A film that states its length has no more bytes a second. */
const fastFilmBytesPerSecond = 5_000_000;

/** A bound on the seconds of a film in base64: by the header of an MP4 file, else by its bytes. */
export function filmSeconds(base64: string): number {
  const bytes = bytesOfBase64(base64);
  const tailAt = Math.max(0, base64.length - 1024 * 1024);
  const tail = base64.slice(tailAt - tailAt % 4);
  const stated = mp4Seconds(firstBytes(base64, 256 * 1024)) ??
    mp4Seconds(firstBytes(tail, bytesOfBase64(tail)));
  return stated === null
    ? bytes / slowFilmBytesPerSecond
    : Math.max(stated, bytes / fastFilmBytesPerSecond);
}

/** The length in a movie header: ISO 14496-12, 8.2.2. */
function mp4Seconds(bytes: Uint8Array): number | null {
  const at = new TextDecoder("latin1").decode(bytes).indexOf("mvhd");
  if (at < 0 || at + 36 > bytes.length) return null;
  const view = viewOf(bytes);
  const isLong = view.getUint8(at + 4) === 1;
  const scale = view.getUint32(at + (isLong ? 24 : 16));
  const duration = isLong ? Number(view.getBigUint64(at + 28)) : view.getUint32(at + 20);
  return scale === 0 || duration === 0 ? null : duration / scale;
}
