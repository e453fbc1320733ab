import { inflateSync } from "node:zlib";
import { latin1Of } from "../base/latin1.ts";
import type { Steps } from "../base/steps.ts";
import type { MediaWork } from "./media_work.ts";
import { PdfObjects } from "./pdf_objects.ts";

/** Bounds of the billed contents of a PDF document. */
export interface PdfSize {
  pages: number;
  /** Bytes of the strings that its pages show. */
  textBytes: number;
}

/** Streams are not read that together grow to more than this many times the document's size. */
const growthMax = 20;
/** A longer stream is not read: decompressing it would block other requests. */
const streamBytesMax = 2 * 1024 * 1024;
/** No stream grows more: https://zlib.net/zlib_tech.html */
const flateGrowth = 1_032;
/** How many times larger a stream in another packing becomes. */
const otherGrowth = 8;

/**
 * Counts the pages of a PDF document and the text on them, also in compressed objects and streams:
 * ISO 32000-2, 7.5.7. Null where it is not understood completely: where objects are encrypted,
 * hidden, broken, too many or too large.
 */
export function* readPdf(bytes: Uint8Array, work: MediaWork): Steps<PdfSize | null> {
  const file = latin1Of(bytes);
  work.growth += growthMax * bytes.length;
  const objects = new PdfObjects(work);
  const others: { number: number | null; bytes: number }[] = [];
  let textBytes = 0;
  yield;
  for (let from = 0;;) {
    const stream = nextStream(file, { from, work });
    if (stream === "broken") return null;
    const last = yield* objects.addPlain(file.slice(from, stream?.begin ?? file.length));
    if (last === null) return null;
    if (stream === null) break;
    const { text: dictionary, number } = last;
    const data = bytes.subarray(stream.start, stream.end);
    const read = yield* readStream({ dictionary, data }, work);
    if (read === null) return null;
    if (read.objects !== null && !(yield* objects.addCompressed(read.objects, dictionary))) {
      return null;
    }
    textBytes += read.textBytes;
    if (read.isOther) others.push({ number, bytes: data.length });
    from = stream.end + endWord.length;
  }
  // What an image says of itself does not matter where a page shows it as its text.
  const contents = objects.contents();
  for (const { number, bytes } of others) {
    if (number === null || contents.has(number)) textBytes += bytes * flateGrowth;
  }
  const pages = objects.countPages();
  return pages === null || pages === 0 ? null : { pages, textBytes };
}

const [beginWord, endWord] = ["stream", "endstream"];
const blanks = new Set([0, 9, 10, 12, 13, 32]);

interface StreamPlace {
  /** The position at which the stream's dictionary ends. */
  begin: number;
  /** Where its data begin and end. */
  start: number;
  end: number;
}

/** The next word that may begin a stream; -1 where there is none up to the end. */
function wordAt(file: string, { at, end }: { at: number; end: number }): number {
  // A search in all of the file would block other requests.
  const found = file.slice(at, end + beginWord.length).indexOf(beginWord);
  return found < 0 ? -1 : at + found;
}

/** The next stream; null where there is none, or too much before it. */
function nextStream(
  file: string,
  { from, work }: { from: number; work: MediaWork },
): StreamPlace | "broken" | null {
  for (let at = from;;) {
    const word = wordAt(file, { at, end: from + work.plainBytes });
    if (word < 0) return null;
    if (work.streams-- <= 0 || file.slice(word - 3, word) === "end") return "broken";
    at = word + beginWord.length;
    let begin = word;
    while (begin > from && word - begin < 64 && blanks.has(file.charCodeAt(begin - 1))) begin--;
    const next = file.charCodeAt(at);
    // Otherwise it is a word in a text.
    if (file.slice(begin - 2, begin) !== ">>" || !blanks.has(next)) continue;
    if (next !== 10 && next !== 13) return "broken";
    const start = at + (next === 13 && file.charCodeAt(at + 1) === 10 ? 2 : 1);
    const end = file.indexOf(endWord, start);
    return end < 0 ? "broken" : { begin, start, end };
  }
}

interface PdfStream {
  dictionary: string;
  data: Uint8Array;
}

/** Streams without objects or text: images, fonts, colors, descriptions. */
const isOther = new RegExp(
  "/Subtype\\s*/(Image|XML|Type1C|CIDFontType0C|OpenType)\\b|/(Length1|XRef|Alternate)\\b",
);
const hasObjects = /\/ObjStm\b|\/First\b/;
const filters = /\/Filter\b\s*(?:\[\s*(\/\w+)\s*\]|(\/\w+))?/g;

/** How a stream is packed. */
function packingOf(dictionary: string): "none" | "flate" | "unknown" {
  const found = [...dictionary.matchAll(filters)];
  if (found.length === 0) return "none";
  const [[, only, name] = []] = found;
  const isFlate = found.length === 1 && /^\/(FlateDecode|Fl)$/.test(only ?? name ?? "");
  return isFlate ? "flate" : "unknown";
}

interface StreamRead {
  /** The stream's objects; null where it has none. */
  objects: Uint8Array | null;
  textBytes: number;
  /** Whether the stream's dictionary says that it has neither objects nor text. */
  isOther?: true;
}

/** Reads a stream that may have objects or text. Null where it has objects that are unreadable. */
function* readStream(
  { dictionary, data }: PdfStream,
  work: MediaWork,
): Steps<StreamRead | null> {
  const isObjects = hasObjects.test(dictionary);
  if (!isObjects && isOther.test(dictionary)) return { objects: null, textBytes: 0, isOther: true };
  const packing = packingOf(dictionary);
  const content = packing === "none" ? data : packing === "flate" ? inflated(data, work) : null;
  yield;
  if (content === "too long") return { objects: null, textBytes: data.length * flateGrowth };
  if (!isObjects) {
    const textBytes = content === null ? data.length * otherGrowth : textBytesIn(content);
    yield;
    return { objects: null, textBytes };
  }
  const isRead = content !== null && !/\/Predictor\b/.test(dictionary);
  return isRead ? { objects: content, textBytes: 0 } : null;
}

/** The stream's content; null where it is damaged. */
function inflated(data: Uint8Array, work: MediaWork): Uint8Array | "too long" | null {
  const most = Math.min(streamBytesMax, work.inflatedBytes, work.growth);
  if (most <= 0) return "too long";
  const take = (bytes: number) => {
    work.inflatedBytes -= bytes;
    work.growth -= bytes;
  };
  try {
    // Streams that were cut are read as far as they go.
    const content = inflateSync(data, { maxOutputLength: most, finishFlush: 2 });
    take(content.length);
    return content;
  } catch (error) {
    if (!(error instanceof RangeError)) return null;
    take(most);
    return "too long";
  }
}

const [open, close, escape, less, greater] = [0x28, 0x29, 0x5c, 0x3c, 0x3e];

function textBytesIn(content: Uint8Array): number {
  return content.length > streamBytesMax ? content.length : stringBytes(content);
}

/** Bytes of the strings in a content stream: ISO 32000-2, 7.3.4. */
function stringBytes(content: Uint8Array): number {
  let bytes = 0;
  let depth = 0;
  for (let at = 0; at < content.length; at++) {
    const byte = content[at];
    if (depth > 0) {
      bytes++;
      if (byte === escape) at++;
      else if (byte === open) depth++;
      else if (byte === close) depth--;
    } else if (byte === open) {
      depth++;
    } else if (byte === less && content[at + 1] !== less) {
      const end = content.indexOf(greater, at);
      if (end < 0) break;
      bytes += Math.ceil((end - at) / 2);
      at = end;
    } else if (byte === less) {
      at++;
    }
  }
  return bytes;
}
