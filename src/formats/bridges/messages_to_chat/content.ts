import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import { notCarried, requireList, requireObjectIn, requireString } from "../carried_fields.ts";

/**
 * A block of a user's turn as parts of a chat message: text, an image, or a PDF as a file. Throws
 * 400 for other blocks, and for content that only Anthropic can reach.
 */
export function toChatParts(block: JsonObject, at: string): JsonObject[] {
  switch (block.type) {
    case "text":
      return textParts(requireString(block.text, `${at}.text`));
    case "image":
      return [imagePart(requireObjectIn(block.source, `${at}.source`), `${at}.source`)];
    case "document":
      return documentParts(block, at);
    default:
      throw notCarried(`${at}.type`);
  }
}

function imagePart(source: JsonObject, at: string): JsonObject {
  switch (source.type) {
    case "base64":
      return { type: "image_url", image_url: { url: dataUrl(source, at) } };
    case "url":
      return { type: "image_url", image_url: { url: requireString(source.url, `${at}.url`) } };
    default:
      throw notCarried(`${at}.type`);
  }
}

function dataUrl({ media_type: type, data }: JsonObject, at: string): string {
  const mediaType = requireString(type, `${at}.media_type`);
  return `data:${mediaType};base64,${requireString(data, `${at}.data`)}`;
}

/** A document: its title and context are text that the model reads before it. */
function documentParts(block: JsonObject, at: string): JsonObject[] {
  const { title, context, citations } = block;
  if (isObject(citations) && citations.enabled === true) throw notCarried(`${at}.citations`);
  const source = requireObjectIn(block.source, `${at}.source`);
  const within = `${at}.source`;
  switch (source.type) {
    case "text":
      return textParts(title, context, requireString(source.data, `${within}.data`));
    case "content":
      return [...textParts(title, context), ...contentParts(source.content, `${within}.content`)];
    case "base64": {
      if (source.media_type !== "application/pdf") throw notCarried(`${within}.media_type`);
      const [filename = "document.pdf"] = [title].filter(isText);
      const file = { filename, file_data: dataUrl(source, within) };
      return [...textParts(context), { type: "file", file }];
    }
    default:
      throw notCarried(`${within}.type`);
  }
}

function textParts(...values: (Json | undefined)[]): JsonObject[] {
  return values.filter(isText).map((text) => ({ type: "text", text }));
}

function isText(value: Json | undefined): value is string {
  return typeof value === "string" && value !== "";
}

function contentParts(content: Json | undefined, at: string): JsonObject[] {
  if (typeof content === "string") return textParts(content);
  return requireList(content, at).flatMap((item, index) => {
    const block = requireObjectIn(item, `${at}.${index}`);
    if (block.type !== "text" && block.type !== "image") throw notCarried(`${at}.${index}.type`);
    return toChatParts(block, `${at}.${index}`);
  });
}
