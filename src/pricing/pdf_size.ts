import { inflateSync } from "node:zlib";

/** What a PDF document has that is billed, as bounds. */
export interface PdfSize {
  pages: number;
  /** Bytes of the strings that its pages show. */
  textBytes: number;
}

/** What may still be read of the documents of one request. */
export interface PdfWork {
  /** Bytes to decompress. */
  bytes: number;
  streams: number;
}

/** Creates the allowance of one request. */
export function createPdfWork(): PdfWork {
  return { bytes: 8 * 1024 * 1024, streams: 20_000 };
}

/** A stream that grows more than this has been made to. */
const usualGrowth = 200;

/**
 * Counts the pages of a PDF document and the text on them, also in compressed objects and streams:
 * ISO 32000-2, 7.5.7. Null where its objects cannot be read: they are encrypted, hidden, broken or
 * too large.
 */
export function readPdf(bytes: Uint8Array, work: PdfWork): PdfSize | null {
  const file = new TextDecoder("latin1").decode(bytes);
  const size: PdfSize = { pages: 0, textBytes: 0 };
  if (/\/Encrypt\b/.test(file)) return null;
  let unread = file.match(/\/ObjStm/g)?.length ?? 0;
  let from = 0;
  const beginsStream = />>\s*stream\r?\n/g;
  for (let begin = beginsStream.exec(file); begin; begin = beginsStream.exec(file)) {
    const start = beginsStream.lastIndex;
    const end = file.indexOf("endstream", start);
    if (end < 0) break;
    if (work.streams-- <= 0) return null;
    const plain = file.slice(from, begin.index);
    if (!countPages(plain, size)) return null;
    const stream = { dictionary: dictionaryOf(plain), data: bytes.subarray(start, end) };
    if (hasObjects(stream)) unread--;
    if (!readStream(stream, size, work)) return null;
    from = beginsStream.lastIndex = end + 9;
  }
  // Objects that a reader of PDF would find and this one did not.
  if (unread !== 0 || !countPages(file.slice(from), size)) return null;
  return size.pages > 0 ? size : null;
}

/** Dictionaries of streams are shorter. */
const dictionaryChars = 4 * 1024;

interface PdfStream {
  dictionary: string;
  data: Uint8Array;
}

/** What follows the last object's begin: the dictionary of a stream. */
function dictionaryOf(plain: string): string {
  const end = plain.slice(-dictionaryChars);
  return end.slice(Math.max(0, end.lastIndexOf("obj")));
}

/** Streams without objects or text: images, fonts, colors, descriptions. */
const isOther = new RegExp(
  "/Subtype\\s*/(Image|XML|Type1C|CIDFontType0C|OpenType)\\b|/(Length1|XRef|Alternate)\\b",
);

const structuralNames = new Set(["Type", "Page", "Pages", "Kids", "Count", "ObjStm", "Filter"]);

/** Names with escaped characters are rare. */
const escapedNamesMax = 5_000;

/** Adds the pages that objects define. False for names in disguise. */
function countPages(objects: string, size: PdfSize): boolean {
  let escaped = 0;
  for (const [, name = ""] of objects.matchAll(/\/(\w{0,9}#[\da-fA-F]{2}[\w#]{0,32})/g)) {
    const plain = name.replace(
      /#([\da-fA-F]{2})/g,
      (_, hex) => String.fromCharCode(parseInt(hex, 16)),
    );
    if (structuralNames.has(plain) || ++escaped > escapedNamesMax) return false;
  }
  size.pages += objects.match(/\/Type\s*\/Page(?![a-zA-Z])/g)?.length ?? 0;
  let stated = 0;
  for (const [, count] of objects.matchAll(/\/Count\s+(\d{1,6})/g)) {
    stated = Math.max(stated, Number(count));
  }
  for (const [, kids = ""] of objects.matchAll(/\/Kids\s*\[([^[\]]*)\]/g)) {
    stated = Math.max(stated, kids.match(/\bR\b/g)?.length ?? 0);
  }
  size.pages = Math.max(size.pages, stated);
  return true;
}

function hasObjects({ dictionary }: PdfStream): boolean {
  return /\/Type\s*\/ObjStm/.test(dictionary);
}

/** Reads a stream that may have objects or text. False where it has objects that are unreadable. */
function readStream(stream: PdfStream, size: PdfSize, work: PdfWork): boolean {
  const { dictionary, data } = stream;
  if (!hasObjects(stream) && isOther.test(dictionary)) return true;
  const isFlate = /\/(FlateDecode|Fl)\b/.test(dictionary);
  const isOtherwisePacked = /\/(LZW|LZ|ASCII85|ASCIIHex|RunLength|A85|AHx|RL)/.test(dictionary);
  const content = isOtherwisePacked ? null : isFlate ? inflated(data, work) : data;
  if (content === "bomb") return false;
  if (content === null) {
    size.textBytes += data.length * (isOtherwisePacked ? 8 : 1);
    return !hasObjects(stream);
  }
  if (hasObjects(stream)) {
    const isPredicted = /\/Predictor\b/.test(dictionary);
    return !isPredicted && countPages(new TextDecoder("latin1").decode(content), size);
  }
  size.textBytes += stringBytes(content);
  return true;
}

/** The stream's content; null where it is damaged, or where there is too much to read. */
function inflated(data: Uint8Array, work: PdfWork): Uint8Array | "bomb" | null {
  if (work.bytes <= 0) return null;
  try {
    // Streams that were cut are read as far as they go.
    const content = inflateSync(data, { maxOutputLength: work.bytes, finishFlush: 2 });
    work.bytes -= content.length;
    return content;
  } catch (error) {
    const isTooLarge = error instanceof RangeError;
    const grows = data.length * usualGrowth < work.bytes;
    if (isTooLarge) work.bytes = 0;
    return isTooLarge && grows ? "bomb" : null;
  }
}

const [open, close, escape, less, greater] = [0x28, 0x29, 0x5c, 0x3c, 0x3e];

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
