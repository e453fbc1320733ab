import { badRequest } from "../../../base/errors.ts";
import { isObject, type Json, type JsonObject } from "../../../base/json.ts";
import { notInChat, typeName } from "./not_in_chat.ts";

const textTypes = new Set<unknown>(["input_text", "output_text", "text"]);

/** The texts of a content, each with its place. Throws 400 for anything else in it. */
export function textsOfContent(content: Json | undefined, param: string): string[] {
  if (typeof content === "string") return [content];
  return partsOf(content, param).map((part, index) => {
    const at = `${param}.${index}`;
    if (!isObject(part)) throw badRequest(at, `'${at}' must be an object.`);
    // What a model refused to say is what it said.
    if (part.type === "refusal") return textIn(part, "refusal", at);
    if (!textTypes.has(part.type)) {
      throw notInChat(at, `a part of the type '${typeName(part.type)}' here`);
    }
    return textIn(part, "text", at);
  });
}

/**
 * A content as chat servers know it: a text where it is one, else parts. Throws 400 for what only
 * the upstream that made it could find, such as the id of a file.
 */
export function chatContent(content: Json | undefined, param: string): Json {
  if (typeof content === "string") return content;
  const parts = partsOf(content, param).map((part, index) => chatPart(part, `${param}.${index}`));
  const [first] = parts;
  return parts.length === 1 && first?.type === "text" && first.text !== undefined
    ? first.text
    : parts;
}

/** The result of a tool. */
export interface ToolOutput {
  text: string;
  /** Images and files: OpenAI's chat takes only text in the message of a tool. */
  media: JsonObject[];
}

/** The result of a tool as its texts and the parts that no message of a tool may have. */
export function readOutput(output: Json | undefined, param: string): ToolOutput {
  if (typeof output === "string") return { text: output, media: [] };
  const parts = partsOf(output, param).map((part, index) => chatPart(part, `${param}.${index}`));
  const texts = parts.filter(isText).map(({ text }) => text);
  return { text: texts.join("\n"), media: parts.filter((part) => !isText(part)) };
}

/** Parts before a content, as one content. */
export function withPartsBefore(parts: JsonObject[], content: Json): Json {
  const rest = Array.isArray(content) ? content : [{ type: "text", text: content }];
  return [...parts, ...rest];
}

function isText({ type }: JsonObject): boolean {
  return type === "text";
}

function partsOf(content: Json | undefined, param: string): Json[] {
  if (Array.isArray(content)) return content;
  throw badRequest(param, `'${param}' must be a text or a list of parts.`);
}

function chatPart(part: Json, param: string): JsonObject {
  if (!isObject(part)) throw badRequest(param, `'${param}' must be an object.`);
  if (textTypes.has(part.type)) return { type: "text", text: textIn(part, "text", param) };
  switch (part.type) {
    case "input_image":
      return imagePart(part, param);
    case "input_file":
      return filePart(part, param);
    case "input_audio":
      return { type: "input_audio", input_audio: part.input_audio ?? null };
    default:
      throw notInChat(param, `a part of the type '${typeName(part.type)}'`);
  }
}

function imagePart({ image_url: url, detail, file_id: id }: JsonObject, param: string): JsonObject {
  if (typeof id === "string") throw notInChat(`${param}.file_id`, "an image by its id");
  if (typeof url !== "string") {
    throw badRequest(`${param}.image_url`, `'${param}.image_url' must be a text.`);
  }
  const isPlain = detail === undefined || detail === null || detail === "auto";
  return { type: "image_url", image_url: isPlain ? { url } : { url, detail } };
}

function filePart(part: JsonObject, param: string): JsonObject {
  const { file_data: data, filename, file_id: id, file_url: url, detail } = part;
  if (typeof id === "string") throw notInChat(`${param}.file_id`, "a file by its id");
  if (typeof url === "string") throw notInChat(`${param}.file_url`, "a file by its address");
  if (typeof data !== "string") {
    throw badRequest(`${param}.file_data`, `'${param}.file_data' must be a text.`);
  }
  if (typeof detail === "string" && detail !== "auto") {
    throw notInChat(`${param}.detail`, "the detail of a file");
  }
  const named = typeof filename === "string" ? { filename } : {};
  return { type: "file", file: { ...named, file_data: data } };
}

function textIn(part: JsonObject, field: string, param: string): string {
  const text = part[field];
  if (typeof text === "string") return text;
  throw badRequest(`${param}.${field}`, `'${param}.${field}' must be a text.`);
}
