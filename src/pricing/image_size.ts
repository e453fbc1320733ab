/** Width and height in pixels. */
export interface ImageSize {
  width: number;
  height: number;
}

/** A JPEG's size may stand behind a profile and a thumbnail. */
const jpegBytesMax = 512 * 1024;

/** The first bytes of base64 data; empty where it is none. */
export function firstBytes(base64: string, most: number): Uint8Array {
  const chars = base64.slice(0, Math.ceil(most / 3) * 4).replaceAll("-", "+").replaceAll("_", "/");
  try {
    const binary = atob(chars.slice(0, chars.length - chars.length % 4));
    return Uint8Array.from(binary, (char) => char.charCodeAt(0));
  } catch {
    return new Uint8Array();
  }
}

/**
 * The size of a PNG, JPEG, WebP or GIF image by its header, from base64 data. Null for others, and
 * for headers that are damaged.
 */
export function imageSize(base64: string): ImageSize | null {
  const start = firstBytes(base64, 48);
  const size = pngSize(start) ?? gifSize(start) ?? webpSize(start) ??
    (start[0] === 0xff && start[1] === 0xd8 ? jpegSize(firstBytes(base64, jpegBytesMax)) : null);
  return size && size.width > 0 && size.height > 0 ? size : null;
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function tagAt(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}

/** https://www.w3.org/TR/png-3/#11IHDR */
function pngSize(bytes: Uint8Array): ImageSize | null {
  if (bytes.length < 24 || tagAt(bytes, 0) !== "\x89PNG" || tagAt(bytes, 12) !== "IHDR") {
    return null;
  }
  const view = viewOf(bytes);
  return { width: view.getUint32(16), height: view.getUint32(20) };
}

/** https://www.w3.org/Graphics/GIF/spec-gif89a.txt, section 18 */
function gifSize(bytes: Uint8Array): ImageSize | null {
  if (bytes.length < 10 || tagAt(bytes, 0) !== "GIF8") return null;
  const view = viewOf(bytes);
  return { width: view.getUint16(6, true), height: view.getUint16(8, true) };
}

/** https://developers.google.com/speed/webp/docs/riff_container */
function webpSize(bytes: Uint8Array): ImageSize | null {
  if (bytes.length < 30 || tagAt(bytes, 0) !== "RIFF" || tagAt(bytes, 8) !== "WEBP") return null;
  const view = viewOf(bytes);
  switch (tagAt(bytes, 12)) {
    case "VP8 ":
      return {
        width: view.getUint16(26, true) & 0x3fff,
        height: view.getUint16(28, true) & 0x3fff,
      };
    case "VP8L": {
      const bits = view.getUint32(21, true);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case "VP8X":
      return {
        width: (view.getUint32(24, true) & 0xffffff) + 1,
        height: (view.getUint32(26, true) >>> 8) + 1,
      };
    default:
      return null;
  }
}

/** Walks the segments up to the frame header: ITU-T T.81, B.2.2. */
function jpegSize(bytes: Uint8Array): ImageSize | null {
  const view = viewOf(bytes);
  for (let at = 2; at + 9 <= bytes.length;) {
    if (bytes[at] !== 0xff) return null;
    const marker = bytes[at + 1] ?? 0;
    if (marker === 0xff) {
      at++;
      continue;
    }
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
    if (isFrame) return { width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    at += 2 + Math.max(2, view.getUint16(at + 2));
  }
  return null;
}
