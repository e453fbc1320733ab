import { codeOf, firstBytes, viewOf } from "./image_size.ts";
import { createMediaWork, type MediaWork } from "./media_work.ts";
import { mp3BytesPerSecond, mp3Seconds } from "./mp3_length.ts";
import { mp4FilmSeconds, mp4SoundSeconds } from "./mp4_length.ts";
import { oggSeconds } from "./ogg_length.ts";
import { wavBytesPerSecond, wavSeconds } from "./wav_length.ts";
import { webmSeconds } from "./webm_length.ts";

// A length is a bound: the longest that any reading of a file allows. What a header says can make
// it longer, and never shorter. A file that is not completely understood counts by its bytes.

/** AMR and Opus make speech this small. */
const slowestBytesPerSecond = 500;
/** G.711, the smallest of the formats without a header. */
const rawBytesPerSecond = 8_000;

/** The most seconds of sound that a file of so many bytes can have. */
export function secondsByBytes(bytes: number): number {
  return bytes / slowestBytesPerSecond;
}

/** Bytes of base64 data, at most. */
export function bytesOfBase64(base64: string): number {
  return Math.ceil(base64.length * 3 / 4);
}

/** A bound on the seconds of a sound in base64. `format` is the caller's, in small letters. */
export function soundSeconds(base64: string, format: string, work = createMediaWork()): number {
  const bytes = bytesOfBase64(base64);
  const file = firstBytes(base64, bytes);
  // Some decoders skip what is no base64.
  return file.length === 0 ? secondsByBytes(bytes) : soundSecondsOf(file, format, work);
}

/**
 * A bound on the seconds of a sound file: by the samples of WAV, the frames of MP3, the packets of
 * Opus in Ogg and WebM, and the tables of AAC in MP4, else by its bytes.
 */
export function soundSecondsOf(
  file: Uint8Array,
  format: string,
  work: MediaWork = createMediaWork(),
): number {
  const options = { work, slowest: slowestBytesPerSecond };
  const seconds = oggSeconds(file, options) ?? webmSeconds(file, options) ??
    mp4SoundSeconds(file, work) ?? wavSeconds(file, work) ?? mp3Seconds(file, options);
  if (seconds !== null) return seconds;
  const isRaw = (format.startsWith("pcm") || format.startsWith("g711")) && !hasHeader(file);
  return isRaw ? file.length / rawBytesPerSecond : secondsByBytes(file.length);
}

/** How files begin that are no raw samples, at their first byte or at their fifth. */
const headers = new Set(
  ["OggS", "fLaC", "RIFF", "RIFX", "RF64", "BW64", "FORM", "caff", "#!AM", "ADIF"].map(codeOf),
);
const [matroska, ftyp] = [0x1a45dfa3, codeOf("ftyp")];
const [id3, anyFrame] = [0x494433, 0xffe];

function hasHeader(file: Uint8Array): boolean {
  if (file.length < 8) return false;
  const view = viewOf(file);
  const start = view.getUint32(0);
  return headers.has(start) || start === matroska || view.getUint32(4) === ftyp ||
    start >>> 8 === id3 || start >>> 20 === anyFrame || start >>> 20 === anyFrame + 1;
}

/** Samples of 16 bits at 24 kHz: what servers make where PCM is asked for. */
const pcmBytesPerSecond = 48_000;

/** Bytes a second of a sound that begins so: of WAV, MP3 and PCM; null for others. */
export function bytesPerSecond(start: Uint8Array, format: string): number | null {
  if (format.startsWith("pcm")) return pcmBytesPerSecond;
  return wavBytesPerSecond(start, createMediaWork()) ?? mp3BytesPerSecond(start);
}

/** Without a length of its own, a film is bounded by what recordings of a screen have. */
const slowFilmBytesPerSecond = 12_500;

/** The most seconds that a film of so many bytes has, as far as nothing else is known of it. */
export function filmSecondsByBytes(bytes: number): number {
  return bytes / slowFilmBytesPerSecond;
}

/** A bound on the seconds of a film in base64: by the headers of an MP4 file, else by its bytes. */
export function filmSeconds(base64: string, work: MediaWork = createMediaWork()): number {
  const bytes = bytesOfBase64(base64);
  return mp4FilmSeconds(firstBytes(base64, bytes), work) ?? filmSecondsByBytes(bytes);
}
