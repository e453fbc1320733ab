import { badRequest } from "../../../base/errors.ts";
import type { Json, JsonObject } from "../../../base/json.ts";
import { notCarried, requireObjectIn, requireString } from "../carried_fields.ts";

/**
 * The content of a chat message as that of an input item: a text where it is one, else parts.
 * Throws 400 for parts that responses cannot carry.
 */
export function toParts(content: Json | undefined, at: string): Json {
  if (content === undefined || content === null) return "";
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) {
    throw badRequest(at, `'${at}' must be a string or an array of content parts.`);
  }
  return content.map((part, index) => {
    const within = `${at}.${index}`;
    return toPart(requireObjectIn(part, within), within);
  });
}

function toPart(part: JsonObject, at: string): JsonObject {
  switch (part.type) {
    case "text":
    case "input_text":
      return { type: "input_text", text: requireString(part.text, `${at}.text`) };
    case "image_url":
      return imagePart(part.image_url, `${at}.image_url`);
    case "file":
      return filePart(requireObjectIn(part.file, `${at}.file`), `${at}.file`);
    default:
      throw notCarried(`${at}.type`);
  }
}

function imagePart(value: Json | undefined, at: string): JsonObject {
  const sent = typeof value === "string" ? { url: value } : requireObjectIn(value, at);
  const { url, detail } = sent;
  const image_url = requireString(url, `${at}.url`);
  return { type: "input_image", image_url, detail: typeof detail === "string" ? detail : "auto" };
}

/** A file by its data, or by an id where the project lets its callers name those. */
function filePart({ file_data: data, file_id: id, filename }: JsonObject, at: string): JsonObject {
  if (typeof id === "string") return { type: "input_file", file_id: id };
  const named = typeof filename === "string" && filename !== "" ? { filename } : {};
  return { type: "input_file", ...named, file_data: requireString(data, `${at}.file_data`) };
}
