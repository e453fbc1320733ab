import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { utf8Length } from "../base/utf8.ts";
import { firstBytes, imageSize } from "./image_size.ts";
import { imageTokens } from "./image_tokens.ts";

/** Where the length of sounds, documents and films is not known. */
const unknownLengthTokens = 200_000;
const contextTokensMax = 1_000_000;

/**
 * A bound on the prompt tokens of a content part that is not text: by arithmetic that providers
 * publish, from the headers of its data; of an address or an id, the most that is usual.
 */
export function mediaTokens(part: JsonObject, model: string): number {
  const { kind, data, url, detail } = readMedia(part);
  switch (kind) {
    case "image":
      return imageTokens(model, { size: data === null ? null : imageSize(data), detail });
    case "audio":
      return data === null ? unknownLengthTokens : audioTokens(data, formatOf(part), model);
    case "document":
      return data === null ? unknownLengthTokens : documentTokens(data, model);
    case "video":
      return data === null
        ? contextTokensMax
        : atMost(contextTokensMax, (bytesOf(data) / videoBytesPerSecond) * videoTokensPerSecond);
    default:
      return url === null ? utf8Length(JSON.stringify(part)) : unknownLengthTokens;
  }
}

interface Media {
  kind: "image" | "audio" | "document" | "video" | null;
  /** Base64; null where it is elsewhere. */
  data: string | null;
  url: string | null;
  detail: string | null;
}

const kinds: readonly (readonly [RegExp, Media["kind"]])[] = [
  [/image/, "image"],
  [/audio/, "audio"],
  [/video/, "video"],
  [/file|document/, "document"],
];

/** Reads a part in OpenAI's or Anthropic's form. */
function readMedia(part: JsonObject): Media {
  const type = typeof part.type === "string" ? part.type : "";
  const kind = kinds.find(([pattern]) => pattern.test(type))?.[1] ?? null;
  const value = part[type] ?? part.image_url ?? part.source ?? part.file ?? part;
  const holder = isObject(value) ? value : part;
  const text = typeof value === "string"
    ? value
    : firstText(holder, ["data", "file_data", "url", "file_url", "image_url"]);
  const uri = text === null ? null : dataUri.exec(text.slice(0, 256));
  const isUrl = text !== null && /^https?:/i.test(text);
  const data = text === null || isUrl ? null : uri ? text.slice(uri[0].length) : text;
  const detail = typeof holder.detail === "string" ? holder.detail : firstText(part, ["detail"]);
  return { kind, data: data === "" ? null : data, url: isUrl ? text : null, detail };
}

const dataUri = /^data:[^,]*,/i;

function firstText(from: JsonObject, names: readonly string[]): string | null {
  for (const name of names) {
    const value: Json | undefined = from[name];
    if (typeof value === "string") return value;
  }
  return null;
}

function formatOf(part: JsonObject): string {
  const { input_audio: audio } = part;
  return isObject(audio) && typeof audio.format === "string" ? audio.format.toLowerCase() : "";
}

function bytesOf(base64: string): number {
  return Math.ceil(base64.length * 3 / 4);
}

function atMost(most: number, tokens: number): number {
  return Math.min(most, Math.ceil(tokens) + 1);
}

/** No usual codec makes speech smaller. */
const slowestBytesPerSecond = 1_000;

function audioTokens(data: string, format: string, model: string): number {
  const start = firstBytes(data, 48);
  const isWav = start.length >= 36 && String.fromCharCode(...start.subarray(0, 4)) === "RIFF";
  const byteRate = isWav
    ? new DataView(start.buffer, start.byteOffset).getUint32(28, true)
    : format.startsWith("pcm")
    ? 16_000
    : 0;
  const seconds = bytesOf(data) / Math.max(byteRate, slowestBytesPerSecond);
  const perSecond = /gemini/i.test(model) ? 32 : /gpt-|^o\d/i.test(model) ? 12.5 : 50;
  return atMost(contextTokensMax, seconds * perSecond);
}

const videoBytesPerSecond = 25_000;
const videoTokensPerSecond = 300;

/** Pages are searched for in this much of a document. */
const searchedBytes = 24 * 1024 * 1024;

/** A page of a PDF is read as its text and, by most providers, as an image. */
function documentTokens(data: string, model: string): number {
  const bytes = bytesOf(data);
  if (!data.startsWith("JVBERi")) return atMost(contextTokensMax, bytes);
  const text = new TextDecoder("latin1").decode(firstBytes(data, Math.min(bytes, searchedBytes)));
  let pages = text.match(/\/Type\s*\/Page(?![a-zA-Z])/g)?.length ?? 0;
  for (const [, count] of text.matchAll(/\/Count\s+(\d{1,6})/g)) {
    pages = Math.max(pages, Number(count));
  }
  const perPage = /gemini-[12]\./i.test(model) ? 1_000 : /gemini/i.test(model) ? 2_000 : 5_000;
  return atMost(contextTokensMax, pages === 0 ? bytes : pages * perPage);
}
