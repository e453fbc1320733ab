import { deflateSync } from "node:zlib";
import { be, le, tag } from "./image_headers.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

function joined(parts: readonly (string | Uint8Array)[]): Uint8Array {
  const chunks = parts.map((part) => typeof part === "string" ? bytesOf(part) : part);
  const all = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const one of chunks) {
    all.set(one, at);
    at += one.length;
  }
  return all;
}

/** A box of an MP4 file. */
export const box = (type: string, content: readonly number[]): number[] => [
  ...be(content.length + 8, 4),
  ...tag(type),
  ...content,
];

/** An object of a PDF file with a stream. */
export function pdfStream(
  id: number,
  dictionary: string,
  data: Uint8Array,
): (string | Uint8Array)[] {
  return [
    `${id} 0 obj\n<< ${dictionary} /Length ${data.length} >>\nstream\r\n`,
    ...[data, "\nendstream\nendobj\n"],
  ];
}

/** Compressed bytes of a text. */
export const deflated = (text: string): Uint8Array => new Uint8Array(deflateSync(text));

/** How a PDF file is written. */
interface PdfOptions {
  pages: number;
  /** The text of each page. */
  text?: string;
  /** Pages stand in compressed object streams. */
  inStreams?: boolean;
  /** Bytes of an image on each page. */
  imageBytes?: number;
  /** What follows all of it. */
  more?: readonly (string | Uint8Array)[];
}

/** A PDF file as its writers make it. */
export function pdf(
  { pages, text = "Hello", inStreams = false, imageBytes = 0, more = [] }: PdfOptions,
): Uint8Array {
  const ids = Array.from({ length: pages }, (_, at) => 10 + at);
  const root = `<< /Type /Pages /Kids [${
    ids.map((id) => `${id} 0 R`).join(" ")
  }] /Count ${pages} >>`;
  const objects = [
    root,
    ...ids.map((id) => `<< /Type /Page /Parent 2 0 R /Contents ${id}000 0 R >>`),
  ];
  const parts: (string | Uint8Array)[] = ["%PDF-1.7\n%\xe2\xe3\n"];
  if (inStreams) {
    const numbers = objects.map((_, at) => `${at === 0 ? 2 : 9 + at} 0`).join(" ");
    const data = deflated(`${numbers} ${objects.join(" ")}`);
    const dictionary = `/Type /ObjStm /N ${objects.length} /First ${numbers.length + 1}`;
    parts.push(...pdfStream(5, `${dictionary} /Filter /FlateDecode`, data));
  } else {
    parts.push(...objects.map((object, at) => `${at + 2} 0 obj\n${object}\nendobj\n`));
  }
  for (const id of ids) {
    const content = deflated(`BT /F1 12 Tf (${text}) Tj ET`);
    parts.push(...pdfStream(id * 1_000, "/Filter /FlateDecode", content));
    if (imageBytes === 0) continue;
    const dictionary = "/Type /XObject /Subtype /Image /Width 100 /Height 100 /Filter /DCTDecode";
    parts.push(...pdfStream(id * 1_000 + 1, dictionary, new Uint8Array(imageBytes).fill(0x28)));
  }
  return joined([...parts, ...more, "trailer\n<< /Root 1 0 R >>\n%%EOF\n"]);
}

/** How a WAV file is written. */
interface WavOptions {
  seconds: number;
  rate?: number;
  channels?: number;
  bits?: number;
  /** The format's tag: 1 is PCM. */
  format?: number;
  /** The length that the header states. */
  dataSize?: number;
  /** The rate that the header states. */
  byteRate?: number;
  /** Bytes of a chunk before the format. */
  before?: number;
  magic?: string;
  /** The format in an extensible header, and a byte of its GUID. */
  subformat?: number;
  guid?: number;
}

/** A WAV file with silence. */
export function wav(options: WavOptions): Uint8Array {
  const { seconds, rate = 16_000, channels = 1, bits = 16, format = 1, magic = "RIFF" } = options;
  const block = channels * bits / 8;
  const length = Math.ceil(seconds * rate) * block;
  const { dataSize = length, byteRate = rate * block, before = 0 } = options;
  const { subformat = 1, guid = 0x71 } = options;
  const isExtensible = format === 0xfffe;
  const rest = [0, 0, 0, 0, 0x10, 0, 0x80, 0, 0, 0xaa, 0, 0x38, 0x9b, guid];
  const extension = isExtensible
    ? [...le(22, 2), ...le(bits, 2), ...le(0, 4), ...le(subformat, 2), ...rest]
    : [];
  const header = [
    ...[...tag(magic), ...le(0xffffffff, 4), ...tag("WAVE")],
    ...before > 0 ? [...tag("JUNK"), ...le(before, 4), ...new Array(before).fill(0)] : [],
    ...[
      ...tag("fmt "),
      ...le(isExtensible ? 40 : 16, 4),
      ...le(format, 2),
      ...le(channels, 2),
      ...le(rate, 4),
    ],
    ...[
      ...le(byteRate, 4),
      ...le(block, 2),
      ...le(bits, 2),
      ...extension,
      ...tag("data"),
      ...le(dataSize, 4),
    ],
  ];
  return joined([Uint8Array.from(header), new Uint8Array(length)]);
}

const kilobits = [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];

/** Frames of MPEG 1, layer 3, at 44.1 kHz, with these indexes of bitrates. */
export function mp3(
  bitrates: readonly number[],
  { tagBytes = 0, tail = 0 }: { tagBytes?: number; tail?: number } = {},
): Uint8Array {
  const parts = [];
  if (tagBytes > 0) {
    const size = [21, 14, 7, 0].map((shift) => (tagBytes >> shift) & 0x7f);
    parts.push(Uint8Array.from([...tag("ID3"), 4, 0, 0, ...size, ...new Array(tagBytes).fill(9)]));
  }
  for (const index of bitrates) {
    const frame = new Uint8Array(Math.floor(144_000 * (kilobits[index] ?? 0) / 44_100));
    frame.set([0xff, 0xfb, (index + 1) << 4, 0]);
    parts.push(frame);
  }
  return joined([...parts, new Uint8Array(tail).fill(9)]);
}

/** The seconds of a frame. */
export const mp3FrameSeconds = 1_152 / 44_100;
