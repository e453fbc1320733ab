import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { latin1Of } from "../base/latin1.ts";
import { memoizeByObject } from "../base/memoize_by_object.ts";
import { runAtOnce, type Steps } from "../base/steps.ts";
import { utf8Length } from "../base/utf8.ts";
import { firstBytes, type ImageSize, imageSize, tagAt } from "./image_size.ts";
import { imageTokens } from "./image_tokens.ts";
import { bytesOfBase64, filmSeconds, filmSecondsByBytes } from "./media_length.ts";
import { secondsByBytes, soundSeconds } from "./media_length.ts";
import { createMediaWork, type MediaWork } from "./media_work.ts";
import { bareModelName, modelVersion } from "./model_family.ts";
import { type PdfSize, readPdf } from "./pdf_size.ts";

/** The context window of a model, in tokens, where it is not known. */
export const contextWindowDefault = 1_048_576;

/** The context on which bounds depend, besides a part and its model. */
interface MediaContext {
  /** The model's context window, in tokens: no prompt is larger. */
  contextWindow: number;
  /** Shared by the parts of one request. */
  work: MediaWork;
}

/**
 * A bound on the prompt tokens of a content part that is not text: by arithmetic that providers
 * publish, from the headers of its data. An image at an address or with an id has the most of any
 * image; other content there may fill the context window.
 */
export function mediaTokens(
  part: JsonObject,
  model: string,
  { contextWindow = contextWindowDefault, work = createMediaWork() }: Partial<MediaContext> = {},
): number {
  const media = mediaOf(part);
  if (!isSized(media)) return contextWindow;
  runAtOnce(measure(media, work));
  return Math.min(contextWindow, Math.ceil(boundOf(media, model)));
}

/** Reads the content of a part, in steps. Its bound is then known at once. */
export function* measurePart(part: JsonObject, work: MediaWork): Steps<void> {
  const media = mediaOf(part);
  if (isSized(media)) yield* measure(media, work);
}

/** A part is read once, also where several targets have prices for it. */
const mediaOf = memoizeByObject((part: JsonObject) => readMedia(part, kindOf(part)));

/** The type of a part that stands for the sound of an earlier response, by its id. */
export const earlierSoundType = "earlier_audio";
/** No model that speaks has a longer response. */
const earlierSoundTokens = 32_768;

/** Whether the content is in the part, or is an image: the size of other content is unknown. */
export function hasKnownSize(part: JsonObject): boolean {
  return isSized(mediaOf(part));
}

function isSized(media: Media): boolean {
  const { kind, payloads, isElsewhere, nested, hasText } = media;
  if (!nested.every(isSized) || payloads.some((one) => contentOf(one, kind) === "archive")) {
    return false;
  }
  if (media.isEarlierSound) return true;
  if (kind === null || kind === "image") return kind === "image" || !isElsewhere;
  return !isElsewhere && (payloads.length > 0 || nested.length > 0 || hasText);
}

function boundOf(media: Media, model: string): number {
  const { kind, payloads, isElsewhere, nested, detail } = media;
  let tokens = media.textBytes + (media.isEarlierSound ? earlierSoundTokens : 0);
  for (const one of nested) tokens += boundOf(one, model);
  for (const { size } of payloads) tokens += size ? sizeTokens(size, media, model) : 0;
  if (kind === "image" && (isElsewhere || payloads.length === 0)) {
    tokens += imageTokens(model, { size: null, detail });
  }
  return tokens;
}

type MediaKind = "image" | "audio" | "video" | "document";

/** Content that is in a part. */
interface Payload {
  mimeType: string;
  data: string;
  isBase64: boolean;
  /** The measured size of the payload; null before it was measured. */
  size: PayloadSize | null;
}

/** What bounds the tokens of a payload, for any model. */
type PayloadSize =
  | { of: "image"; image: ImageSize | null }
  | { of: "sound" | "film"; seconds: number }
  | { of: "pdf"; pdf: PdfSize | null; bytes: number }
  | { of: "other"; image: ImageSize | null; bytes: number };

interface Media {
  kind: MediaKind | null;
  payloads: Payload[];
  isEarlierSound: boolean;
  /** Content is at an address, or has an id. */
  isElsewhere: boolean;
  /** Parts inside this one. */
  nested: Media[];
  /** Whether the content of the document is text blocks. */
  hasText: boolean;
  /** Bytes of all texts, such as a title. */
  textBytes: number;
  detail: string | null;
  format: string;
  framesPerSecond: number;
}

const kinds: readonly (readonly [RegExp, MediaKind])[] = [
  [/image/, "image"],
  [/audio/, "audio"],
  [/video/, "video"],
  [/file|document/, "document"],
];

function kindOf({ type }: JsonObject): MediaKind | null {
  if (typeof type !== "string") return null;
  return kinds.find(([pattern]) => pattern.test(type))?.[1] ?? null;
}

const dataMembers = new Set(["data", "file_data"]);
const addressMembers = new Set(
  "url uri fileUri file_url file_uri image_url video_url audio_url file_id image file audio video"
    .split(
      " ",
    ),
);
/** Members that no model reads, if they are not longer than usual. */
const silentMembers = new Set(
  "type detail media_type mime_type mimeType format resolution media_resolution level ttl".split(
    " ",
  ),
);
const silentCharsMax = 256;

/** Reads a part in OpenAI's, Anthropic's or Gemini's form. */
function readMedia(part: JsonObject, kind: MediaKind | null): Media {
  const media: Media = {
    ...{
      kind,
      isEarlierSound: part.type === earlierSoundType,
      payloads: [],
      isElsewhere: false,
      nested: [],
      textBytes: 0,
    },
    ...{ hasText: false, detail: null, format: "", framesPerSecond: 1 },
  };
  readMembers(part, media);
  return media;
}

function readMembers(from: JsonObject, media: Media): void {
  for (const [name, value] of Object.entries(from)) {
    readValue(value, { name, from, media });
  }
}

interface Place {
  name: string;
  from: JsonObject;
  media: Media;
}

function readValue(value: Json, place: Place): void {
  const { name, media } = place;
  if (typeof value === "string") readString(value, place);
  else if (Array.isArray(value)) { for (const item of value) readItem(item, place); }
  else if (isObject(value)) readMembers(value, media);
  else if (name === "fps" && typeof value === "number") {
    media.framesPerSecond = Math.max(media.framesPerSecond, value);
  }
}

/** A list has parts inside a part. */
function readItem(item: Json, place: Place): void {
  const kind = isObject(item) ? kindOf(item) : null;
  if (isObject(item) && kind !== null) place.media.nested.push(readMedia(item, kind));
  else readValue(item, place);
}

function readString(text: string, { name, from, media }: Place): void {
  if (/resolution|^level$/.test(name) && /ultra/i.test(text)) media.detail = "ultra_high";
  const isUri = /^\s*data:/i.test(text.slice(0, 64));
  const isData = dataMembers.has(name) || (isUri && addressMembers.has(name));
  const hasType = isData && (from.mime_type ?? from.mimeType ?? from.media_type) !== undefined;
  const isContent = isData || addressMembers.has(name);
  // What a part of an unknown type calls a file may be a text.
  const isText = media.kind === null && !isUri && !hasType &&
    !/^\s*\w+:|^file/.test(text.slice(0, 256));
  if (!isContent || isText) {
    if (!silentMembers.has(name) || text.length > silentCharsMax) {
      media.textBytes += utf8Length(text);
      media.hasText ||= name === "text" || name === "content";
    }
    return;
  }
  media.detail ??= typeof from.detail === "string" ? from.detail : null;
  if (typeof from.format === "string") media.format = from.format.toLowerCase();
  const payload = isData ? payloadOf(text, from) : null;
  if (payload) media.payloads.push(payload);
  else media.isElsewhere = true;
}

/** The most characters of a data URI before its content. */
const dataHeaderCharsMax = 1_024;

/** The content of a data URI, of Anthropic's `"type":"text"`, or base64; null for an address. */
function payloadOf(text: string, from: JsonObject): Payload | null {
  if (/^\s*data:/i.test(text.slice(0, 64))) {
    const comma = text.slice(0, dataHeaderCharsMax).indexOf(",");
    if (comma < 0) return null;
    const header = text.slice(text.indexOf(":") + 1, comma).toLowerCase();
    const isBase64 = /;\s*base64\s*$/.test(header);
    return { mimeType: header.trim(), data: text.slice(comma + 1), isBase64, size: null };
  }
  const stated = from.media_type ?? from.mime_type ?? from.mimeType;
  const mimeType = typeof stated === "string" ? stated.toLowerCase() : "";
  if (from.type === "text") return { mimeType, data: text, isBase64: false, size: null };
  if (!/^[\w+/=\s-]*$/.test(text.slice(0, 256))) return null;
  return { mimeType, data: text, isBase64: true, size: null };
}

type Content = MediaKind | "archive" | "pdf";

/** What a payload is: by its first bytes, its MIME type and the part that has it. */
function contentOf({ data, mimeType, isBase64 }: Payload, kind: MediaKind | null): Content {
  if (!isBase64) return kind ?? "document";
  if (kind === "audio" || kind === "video") return kind;
  const start = firstBytes(data, pdfHeaderBytes);
  if (latin1Of(start).includes("%PDF-")) return "pdf";
  const stated = /^(image|audio|video)\//.exec(mimeType)?.[1];
  if (stated === "image" || stated === "audio" || stated === "video") return stated;
  if (kind === "image") return kind;
  // Office documents, whose text is compressed.
  return tagAt(start, 0) === "PK\x03\x04" ? "archive" : "document";
}

/** The header of a PDF document may follow other bytes. */
const pdfHeaderBytes = 1_024 + 8;

function* measure(media: Media, work: MediaWork): Steps<void> {
  for (const one of media.nested) yield* measure(one, work);
  for (const payload of media.payloads) {
    if (payload.size) continue;
    payload.size = yield* sizeOf(payload, media, work);
    yield;
  }
}

function* sizeOf(
  payload: Payload,
  { kind, format }: Media,
  work: MediaWork,
): Steps<PayloadSize> {
  const { data, isBase64 } = payload;
  const bytes = isBase64 ? bytesOfBase64(data) : utf8Length(data);
  switch (contentOf(payload, kind)) {
    case "image":
      return { of: "image", image: isBase64 ? imageSize(data, work) : null };
    case "audio": {
      const seconds = isBase64 ? soundSeconds(data, format, work) : secondsByBytes(bytes);
      return { of: "sound", seconds };
    }
    case "video": {
      const seconds = isBase64 ? filmSeconds(data, work) : filmSecondsByBytes(bytes);
      return { of: "film", seconds };
    }
    case "pdf": {
      const file = firstBytes(data, bytes);
      yield;
      return { of: "pdf", pdf: yield* readPdf(file, work), bytes };
    }
    default:
      return { of: "other", image: isBase64 ? imageSize(data, work) : null, bytes };
  }
}

function sizeTokens(
  size: PayloadSize,
  { detail, framesPerSecond }: Media,
  model: string,
): number {
  switch (size.of) {
    case "image":
      return imageTokens(model, { size: size.image, detail });
    case "sound":
      return soundTokens(size.seconds, model) + 1;
    case "film":
      return size.seconds * filmTokensPerSecond * Math.max(1, framesPerSecond) + 1;
    case "pdf":
      return pdfTokens(size, model) + 1;
    case "other": {
      const ofImage = size.image ? imageTokens(model, { size: size.image, detail }) : 0;
      return Math.max(size.bytes + 1, ofImage);
    }
  }
}

/** Gemini's picture of a second in high resolution, and its sound. */
const filmTokensPerSecond = 332;

/** A bound on the tokens of so many seconds of sound. */
export function soundTokens(seconds: number, model: string): number {
  if (/gemini/i.test(model)) return seconds * 32;
  if (/gpt-|^o\d/i.test(model)) return seconds * 12.5;
  // Whisper's encoder reads pieces of 30 seconds.
  return Math.ceil(seconds / 30) * 30 * 50;
}

/** Tokens of the text of a very dense page. */
const pageTextTokens = 4_000;
/** A page as providers draw it, in pixels. */
const pageSize = { width: 1_700, height: 2_200 };
/** No scanner needs more bytes for the tokens of a page. */
const bytesPerTokenMax = 500;

/** How many times larger compressed objects that cannot be read may become. */
const unreadGrowth = 8;

/** Gemini counts a page as an image, others as an image and its text. */
function pdfTokens({ pdf, bytes }: { pdf: PdfSize | null; bytes: number }, model: string): number {
  const name = bareModelName(model);
  const isGemini = name.startsWith("gemini");
  const image = isGemini
    ? (modelVersion(name)?.major ?? Infinity) < 3 ? 1_000 : 2_000
    : imageTokens(model, { size: pageSize, detail: "original" });
  if (!pdf) return Math.max(bytes * unreadGrowth, image + pageTextTokens);
  const text = isGemini ? 0 : Math.max(pdf.pages * pageTextTokens, pdf.textBytes);
  return Math.max(pdf.pages * image + text, bytes / bytesPerTokenMax);
}
