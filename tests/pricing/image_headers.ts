/** Headers of images, by their format's specification. */
type ImageHeader = (width: number, height: number) => number[];

/** The codes of a text's characters. */
export const tag = (text: string) => [...text].map((char) => char.charCodeAt(0));
/** A number in bytes, the highest first. */
export const be = (value: number, bytes: number) =>
  Array.from({ length: bytes }, (_, at) => (value >>> (8 * (bytes - 1 - at))) & 0xff);
/** A number in bytes, the lowest first. */
export const le = (value: number, bytes: number) => be(value, bytes).reverse();

/** Bytes as base64. */
export function base64(bytes: ArrayLike<number>): string {
  return Uint8Array.from(bytes).toBase64();
}

/** A chunk of a PNG file, with a checksum that no reader of headers looks at. */
export const pngChunk = (type: string, data: readonly number[]) => [
  ...[...be(data.length, 4), ...tag(type)],
  ...[...data, 0, 0, 0, 0],
];
/** What a PNG file begins with. */
export const pngStart = [0x89, ...tag("PNG\r\n\x1a\n")];
/** A PNG file's first chunk. */
const ihdr = (width: number, height: number) =>
  pngChunk("IHDR", [...be(width, 4), ...be(height, 4), 8, 6, 0, 0, 0]);

/** A segment of a JPEG file. */
export const segment = (marker: number, data: readonly number[]) => [
  ...[0xff, marker],
  ...[...be(data.length + 2, 2), ...data],
];
/** A frame header of a JPEG file. */
export const frame = (marker: number, width: number, height: number) =>
  segment(marker, [8, ...be(height, 2), ...be(width, 2), 1, 1, 0x11, 0]);
/** The header of a scan, after which the data follows. */
export const scan = segment(0xda, [1, 1, 0, 0, 63, 0]);

const riff = (
  ...chunks: number[][]
) => [...tag("RIFF"), ...le(0, 4), ...tag("WEBP"), ...chunks.flat()];
const chunk = (type: string, data: readonly number[]) => [
  ...[...tag(type), ...le(data.length, 4)],
  ...[...data, ...new Array(data.length % 2).fill(0)],
];
const vp8 = (w: number, h: number) =>
  chunk("VP8 ", [0, 0, 0, 0x9d, 0x01, 0x2a, ...le(w, 2), ...le(h, 2), ...new Array(20).fill(0)]);
const vp8l = (w: number, h: number) =>
  chunk("VP8L", [0x2f, ...le((w - 1) | ((h - 1) << 14), 4), ...new Array(20).fill(0)]);
const vp8x = (w: number, h: number) =>
  chunk("VP8X", [0, 0, 0, 0, ...le(w - 1, 3), ...le(h - 1, 3)]);

/** One image of each kind. All sides are below 16,384. */
export const imageHeaders: Record<string, ImageHeader> = {
  png: (w, h) => [...pngStart, ...ihdr(w, h), ...pngChunk("IDAT", [1, 2, 3])],
  "animated png": (w, h) => [
    ...[
      ...pngStart,
      ...ihdr(w, h),
      ...pngChunk("acTL", be(2, 8)),
      ...pngChunk("iCCP", tag("profile")),
    ],
    ...[...pngChunk("fcTL", [...be(0, 4), ...be(w, 4), ...be(h, 4)]), ...pngChunk("IDAT", [1])],
  ],
  gif: (w, h) => [
    ...[...tag("GIF89a"), ...le(w, 2), ...le(h, 2), 0, 0, 0],
    ...[0x2c, 0, 0, 0, 0, ...le(w, 2), ...le(h, 2), 0, 2, 0],
  ],
  "animated gif": (w, h) => [
    ...[...tag("GIF89a"), ...le(w, 2), ...le(h, 2), 0x81, 0, 0, ...new Array(12).fill(7)],
    ...[0x21, 0xff, 11, ...tag("NETSCAPE2.0"), 3, 1, 0, 0, 0, 0x21, 0xf9, 4, 0, 5, 0, 0, 0],
    ...[0x2c, 0, 0, 0, 0, ...le(1, 2), ...le(1, 2), 0, 2, 0, 0x3b],
  ],
  jpeg: (w, h) => [0xff, 0xd8, ...segment(0xe0, tag("JFIF\0")), ...frame(0xc0, w, h), ...scan],
  "progressive jpeg": (w, h) => [
    ...[0xff, 0xd8, ...segment(0xdb, new Array(65).fill(1)), ...frame(0xc2, w, h)],
    ...[...segment(0xc4, new Array(20).fill(0)), ...scan],
  ],
  "jpeg with a rotation and a preview in EXIF": (w, h) => [
    ...[0xff, 0xd8, ...segment(0xe1, [...tag("Exif\0\0MM"), 0xff, 0xd8, ...frame(0xc0, 16, 16)])],
    ...[...frame(0xc1, w, h), ...scan],
  ],
  "jpeg with many segments": (w, h) => [
    ...[0xff, 0xd8],
    ...Array.from({ length: 300 }, (_, at) => segment(0xe2, new Array(997).fill(at & 0xff))).flat(),
    ...[0xff, 0xff, 0xff, ...frame(0xc2, w, h), ...scan],
  ],
  "webp, lossy": (w, h) => riff(vp8(w, h)),
  "webp, lossless": (w, h) => riff(vp8l(w, h)),
  "webp, extended": (w, h) => riff(vp8x(w, h), chunk("ICCP", [1, 2, 3]), vp8(w, h)),
  "webp, animated": (w, h) => riff(vp8x(w, h), chunk("ANIM", be(0, 6)), chunk("ANMF", be(0, 16))),
};

/** Files whose headers contradict each other: decoders take one or the other size. */
export const contradictions: Record<string, number[]> = {
  "a frame beyond a GIF's screen": [
    ...[...tag("GIF89a"), ...le(1, 2), ...le(1, 2), 0, 0, 0],
    ...[0x2c, ...le(10, 2), ...le(20, 2), ...le(4_000, 2), ...le(3_000, 2), 0],
  ],
  "a GIF with bytes between its blocks": [
    ...[...tag("GIF89a"), ...le(1, 2), ...le(1, 2), 0, 0, 0, 9, 9, 9],
    ...[0x2c, ...le(0, 4), ...le(4_000, 2), ...le(3_000, 2), 0],
  ],
  "two frames in a JPEG": [
    ...[0xff, 0xd8, ...frame(0xc0, 8, 8), ...frame(0xc0, 4_000, 3_000), ...scan],
  ],
  "a JPEG with bytes between its segments": [
    ...[0xff, 0xd8, 1, 2, 3, 0xff, 0, ...frame(0xc0, 4_000, 3_000), ...scan],
  ],
  "two sizes in a PNG": [
    ...[...pngStart, ...ihdr(1, 1), ...ihdr(4_000, 3_000), ...pngChunk("IDAT", [1])],
  ],
  "a WebP canvas smaller than its frame": riff(vp8x(1, 1), vp8(4_000, 3_000)),
};
