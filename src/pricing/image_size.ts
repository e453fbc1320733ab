import { createMediaWork, type MediaWork } from "./media_work.ts";

/** Width and height in pixels. */
export interface ImageSize {
  width: number;
  height: number;
}

/** A size usually stands in the first bytes, but large profiles and previews may come before it. */
const readsBytes = [4 * 1024, 64 * 1024, 4 * 1024 * 1024];

/**
 * The first bytes of base64 data, up to `most`; empty where it is none. An incomplete group at the
 * end is left out.
 */
export function firstBytes(base64: string, most: number): Uint8Array {
  const chars = base64.slice(0, Math.ceil(most / 3) * 4).replaceAll("-", "+").replaceAll("_", "/");
  try {
    return Uint8Array.fromBase64(chars, { lastChunkHandling: "stop-before-partial" });
  } catch {
    return new Uint8Array();
  }
}

/**
 * The size of a PNG, JPEG, WebP or GIF image by its headers, from base64 data. Null for other
 * formats, and for headers that are damaged or too far behind. Where headers contradict each other,
 * the largest size counts, because decoders disagree on which one is valid. An animation has the
 * size of its canvas. A rotation in EXIF swaps the sides, which no rule of counting distinguishes.
 */
export function imageSize(
  base64: string,
  work: MediaWork = createMediaWork(),
): ImageSize | null {
  for (const most of readsBytes) {
    const bytes = firstBytes(base64, most);
    const { size, isComplete } = readSize(bytes, work);
    const isWhole = base64.length <= Math.ceil(most / 3) * 4;
    if (isComplete || isWhole) return size && size.width > 0 && size.height > 0 ? size : null;
  }
  return null;
}

/** The size that the headers state so far. Not complete: a header that follows may state more. */
interface SizeRead {
  size: ImageSize | null;
  isComplete: boolean;
}

const unreadable: SizeRead = { size: null, isComplete: true };

function readSize(bytes: Uint8Array, work: MediaWork): SizeRead {
  const start = tagAt(bytes, 0);
  if (start === "\x89PNG") return pngSize(bytes, work);
  if (start === "GIF8") return gifSize(bytes, work);
  if (start === "RIFF" && tagAt(bytes, 8) === "WEBP") return webpSize(bytes, work);
  return bytes[0] === 0xff && bytes[1] === 0xd8 ? jpegSize(bytes, work) : unreadable;
}

function larger(known: ImageSize | null, width: number, height: number): ImageSize {
  return {
    width: Math.max(known?.width ?? 0, width),
    height: Math.max(known?.height ?? 0, height),
  };
}

/** Views bytes as numbers. */
export function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Four characters as a number, as they stand in a file. */
export function codeOf(name: string): number {
  return viewOf(new TextEncoder().encode(name)).getUint32(0);
}

/** Four characters, which name a format or a chunk; fewer at the end. */
export function tagAt(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}

const [idat, iend, ihdr] = ["IDAT", "IEND", "IHDR"].map(codeOf);

/** Reads the chunks up to the image data: https://www.w3.org/TR/png-3/#5DataRep */
function pngSize(bytes: Uint8Array, work: MediaWork): SizeRead {
  const view = viewOf(bytes);
  let size: ImageSize | null = null;
  for (let at = 8; at + 8 <= bytes.length; at += 12 + view.getUint32(at)) {
    if (work.elements-- <= 0) return unreadable;
    const type = view.getUint32(at + 4);
    if (type === idat || type === iend) return { size, isComplete: true };
    if (type === ihdr && at + 16 <= bytes.length) {
      size = larger(size, view.getUint32(at + 8), view.getUint32(at + 12));
    }
  }
  return { size, isComplete: false };
}

/**
 * Reads up to the first frame, which may be larger than the screen:
 * https://www.w3.org/Graphics/GIF/spec-gif89a.txt, sections 18 and 20.
 */
function gifSize(bytes: Uint8Array, work: MediaWork): SizeRead {
  if (bytes.length < 13) return unreadable;
  const view = viewOf(bytes);
  const screen = larger(null, view.getUint16(6, true), view.getUint16(8, true));
  const flags = view.getUint8(10);
  let at = 13 + (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);
  while (at + 10 <= bytes.length) {
    if (work.elements-- <= 0) return unreadable;
    const block = bytes[at++];
    if (block === 0x2c) {
      const right = view.getUint16(at, true) + view.getUint16(at + 4, true);
      const bottom = view.getUint16(at + 2, true) + view.getUint16(at + 6, true);
      return { size: larger(screen, right, bottom), isComplete: true };
    }
    if (block === 0x3b) return { size: screen, isComplete: true };
    // Decoders skip what is no block.
    if (block !== 0x21) continue;
    at++;
    for (let length = bytes[at] ?? 0; length > 0; length = bytes[at] ?? 0) {
      if (work.elements-- <= 0) return unreadable;
      at += 1 + length;
    }
    at++;
  }
  return { size: screen, isComplete: false };
}

/** https://developers.google.com/speed/webp/docs/riff_container */
function webpSize(bytes: Uint8Array, work: MediaWork): SizeRead {
  const view = viewOf(bytes);
  let size: ImageSize | null = null;
  for (let at = 12; at + 18 <= bytes.length;) {
    if (work.elements-- <= 0) return unreadable;
    const data = at + 8;
    switch (tagAt(bytes, at)) {
      case "VP8 ": {
        const isKeyFrame = bytes[data + 3] === 0x9d && bytes[data + 4] === 1 &&
          bytes[data + 5] === 0x2a;
        if (!isKeyFrame) return unreadable;
        const [width, height] = [view.getUint16(data + 6, true), view.getUint16(data + 8, true)];
        return { size: larger(size, width & 0x3fff, height & 0x3fff), isComplete: true };
      }
      case "VP8L": {
        if (bytes[data] !== 0x2f) return unreadable;
        const bits = view.getUint32(data + 1, true);
        const [width, height] = [(bits & 0x3fff) + 1, ((bits >>> 14) & 0x3fff) + 1];
        return { size: larger(size, width, height), isComplete: true };
      }
      case "VP8X": {
        const width = (view.getUint32(data + 4, true) & 0xffffff) + 1;
        const height = (view.getUint32(data + 6, true) >>> 8) + 1;
        size = larger(size, width, height);
        break;
      }
      case "ANMF":
        return { size, isComplete: true };
    }
    const length = view.getUint32(at + 4, true);
    at = data + length + length % 2;
  }
  return { size, isComplete: false };
}

/** Walks the segments up to the first scan: ITU-T T.81, B.2. */
function jpegSize(bytes: Uint8Array, work: MediaWork): SizeRead {
  const view = viewOf(bytes);
  let size: ImageSize | null = null;
  for (let at = 2; at + 9 <= bytes.length;) {
    if (work.elements-- <= 0) return unreadable;
    const marker = bytes[at] === 0xff ? bytes[at + 1] ?? 0 : 0;
    // Decoders skip what is no marker.
    if (marker === 0 || marker === 0xff) {
      at++;
      continue;
    }
    const isAlone = marker === 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    if (isAlone) {
      at += 2;
      continue;
    }
    if (marker === 0xd9 || marker === 0xda) return { size, isComplete: true };
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) {
      const [height, width] = [view.getUint16(at + 5), view.getUint16(at + 7)];
      // Without lines, their number follows the scan.
      if (height === 0) return unreadable;
      size = larger(size, width, height);
    }
    at += 2 + Math.max(2, view.getUint16(at + 2));
  }
  return { size, isComplete: false };
}
