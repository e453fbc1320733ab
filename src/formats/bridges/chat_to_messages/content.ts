import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import { notCarried, requireObjectIn, requireString } from "../carried_fields.ts";

/**
 * The content of a chat message as Anthropic's blocks, which are never blank. Throws 400 for parts
 * that messages cannot carry.
 */
export function toBlocks(content: Json | undefined, at: string): JsonObject[] {
  if (content === undefined || content === null) return [];
  if (typeof content === "string") return textBlocks(content);
  if (!Array.isArray(content)) {
    throw badRequest(at, `'${at}' must be a string or an array of content parts.`);
  }
  return content.flatMap((part, index) => {
    const within = `${at}.${index}`;
    const sent = requireObjectIn(part, within);
    const blocks = partBlocks(sent, within);
    const { cache_control: mark } = sent;
    return isObject(mark) ? blocks.map((block) => ({ ...block, cache_control: mark })) : blocks;
  });
}

/** Anthropic refuses blocks that are blank. */
function textBlocks(text: string): JsonObject[] {
  return text.trim() === "" ? [] : [{ type: "text", text }];
}

function partBlocks(part: JsonObject, at: string): JsonObject[] {
  switch (part.type) {
    case "text":
    case "input_text":
    case "output_text":
      return textBlocks(requireString(part.text, `${at}.text`));
    case "refusal":
      return textBlocks(requireString(part.refusal, `${at}.refusal`));
    // Of an assistant's message; what has no signature is left out there.
    case "thinking":
    case "redacted_thinking":
      return [part];
    case "image_url":
      return [imageBlock(part.image_url, `${at}.image_url`)];
    case "file":
      return [documentBlock(requireObjectIn(part.file, `${at}.file`), `${at}.file`)];
    default:
      throw notCarried(`${at}.type`);
  }
}

/** Anthropic reads every image in full: a detail says nothing to it. */
function imageBlock(value: Json | undefined, at: string): JsonObject {
  const { url } = typeof value === "string" ? { url: value } : requireObjectIn(value, at);
  return { type: "image", source: sourceOf(requireString(url, `${at}.url`), `${at}.url`) };
}

/** Data in base64, or an address that the provider reads. */
function sourceOf(url: string, at: string): JsonObject {
  if (/^https?:/i.test(url)) return { type: "url", url };
  const { mediaType, data } = readDataUrl(url, at);
  return { type: "base64", media_type: mediaType, data };
}

function readDataUrl(url: string, at: string): { mediaType: string; data: string } {
  const comma = url.indexOf(",");
  const head = /^data:([^;,]+)(?:;[^,]*)?;base64$/i.exec(url.slice(0, Math.max(0, comma)));
  const mediaType = head?.[1];
  if (mediaType === undefined) {
    throw badRequest(at, `'${at}' must be an HTTP URL or a data URL in base64.`);
  }
  const named = mediaType.toLowerCase();
  return { mediaType: registeredTypes.get(named) ?? named, data: url.slice(comma + 1) };
}

/** Types by names that clients write and Anthropic does not know. */
const registeredTypes = new Map([
  ["image/jpg", "image/jpeg"],
  ["image/pjpeg", "image/jpeg"],
  ["image/x-png", "image/png"],
  ["application/x-pdf", "application/pdf"],
]);

/** A PDF or a plain text, whose name is the document's title. */
function documentBlock(file: JsonObject, at: string): JsonObject {
  const { file_data: sent, filename } = file;
  if (sent === undefined || sent === null) throw notCarried(`${at}.file_id`);
  const within = `${at}.file_data`;
  const source = sourceOf(requireString(sent, within), within);
  const title = typeof filename === "string" && filename !== "" ? { title: filename } : {};
  if (source.type === "url" || source.media_type === "application/pdf") {
    return { type: "document", source, ...title };
  }
  if (source.media_type !== "text/plain") throw notCarried(within);
  const text = textFrom(requireString(source.data, within), within);
  return {
    type: "document",
    source: { type: "text", media_type: "text/plain", data: text },
    ...title,
  };
}

function textFrom(base64: string, at: string): string {
  try {
    const bytes = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw badRequest(at, `'${at}' must be text as UTF-8 in base64.`);
  }
}
