import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import type { BodyShare } from "./body_budget.ts";
import { ApiError, badRequest } from "./errors.ts";
import type { Json, JsonObject } from "./json.ts";
import { formPartsMax } from "./limits.ts";
import { bytesOf } from "./request.ts";
import { decodeUtf8, encodeUtf8 } from "./utf8.ts";

/** The file of a form. */
export interface FormFile {
  /** Its name, as the sender gives it. */
  name: string;
  type: string;
  bytes: Uint8Array;
}

/** A form that has been read. */
export interface ReadForm {
  /** Its texts, by name; those of a name that ends in `[]` as a list. */
  value: JsonObject;
  /** The length of the texts, in bytes. */
  bytes: number;
  file: FormFile | null;
}

/** A form as it is sent, and its content type. */
export interface FormBytes {
  type: string;
  bytes: Uint8Array<ArrayBuffer>;
}

/** The field of a form that may be a file. */
const fileField = "file";

/**
 * Reads a form (RFC 7578) of at most `bytesMax`, with at most one file. Throws 415 when its type is
 * another, 413 when it is too large, 400 when it is malformed, or names a text twice.
 */
export async function readFormBody(
  request: Request,
  bytesMax: number,
  bodies?: BodyShare,
): Promise<ReadForm> {
  const boundary = boundaryOf(request.headers.get("content-type") ?? "");
  return readParts(await bytesOf(request, bytesMax, bodies), boundary);
}

function boundaryOf(type: string): string {
  if (!/^multipart\/form-data\s*(;|$)/i.test(type)) {
    throw new ApiError(415, {
      message: `The content type must be multipart/form-data, not '${type.slice(0, 64)}'.`,
      code: "unsupported_media_type",
    });
  }
  const [, quoted, plain] = /;\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))/i.exec(type) ?? [];
  const boundary = quoted ?? plain;
  if (boundary === undefined) throw malformed("its content type names no boundary");
  return boundary;
}

function readParts(bytes: Uint8Array, boundary: string): ReadForm {
  const texts = new Map<string, Json>();
  let file: FormFile | null = null;
  let length = 0;
  for (const part of partsOf(bytes, boundary)) {
    if (part.filename !== null || part.name === fileField) {
      if (part.name !== fileField) {
        throw badRequest(part.name, `'${part.name}' must be a text, not a file.`);
      }
      if (file) throw badRequest(fileField, "'file' is given more than once.");
      file = { name: part.filename ?? fileField, type: part.type, bytes: part.content };
      continue;
    }
    const text = decodeUtf8(part.content);
    if (text === null) throw badRequest(part.name, `'${part.name}' is not well-formed UTF-8.`);
    length += part.content.length;
    const before = texts.get(part.name);
    if (part.name.endsWith("[]")) {
      texts.set(part.name, [...(Array.isArray(before) ? before : []), text]);
    } else {
      if (before !== undefined) {
        throw badRequest(part.name, `'${part.name}' is given more than once.`);
      }
      texts.set(part.name, text);
    }
  }
  return { value: Object.fromEntries(texts), bytes: length, file };
}

interface Part {
  name: string;
  /** Null for a text. */
  filename: string | null;
  type: string;
  content: Uint8Array;
}

function* partsOf(bytes: Uint8Array, boundary: string): Generator<Part> {
  const whole = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const delimiter = `--${boundary}`;
  let at = whole.indexOf(delimiter);
  if (at < 0 || (at > 0 && whole.toString("latin1", at - 2, at) !== "\r\n")) {
    throw malformed("it does not begin with its boundary");
  }
  for (let count = 0;; count++) {
    at += delimiter.length;
    if (whole.toString("latin1", at, at + 2) === "--") return;
    if (count >= formPartsMax) throw malformed(`it has more than ${formPartsMax} parts`);
    const headEnd = whole.indexOf("\r\n\r\n", at);
    const end = whole.indexOf(`\r\n${delimiter}`, Math.max(at, headEnd + 2));
    if (headEnd < 0 || end < 0) throw malformed("it ends before its last boundary");
    yield readPart(whole.toString("utf8", at, headEnd), bytes.subarray(headEnd + 4, end));
    at = end + 2;
  }
}

const disposition = /^content-disposition:\s*form-data\s*(;.*)$/im;
const partName = /[;\s]name=(?:"((?:[^"\\\r\n]|\\.)*)"|([^\s;"]+))/i;
const partFile = /[;\s]filename=(?:"((?:[^"\\\r\n]|\\.)*)"|([^\s;"]+))/i;

function readPart(head: string, content: Uint8Array): Part {
  const [, parameters = ""] = disposition.exec(head) ?? [];
  const [, quoted, plain] = partName.exec(parameters) ?? [];
  const name = quoted ?? plain ?? "";
  if (name === "") throw malformed("a part of it has no name");
  const file = partFile.exec(parameters);
  const [, type = ""] = /^content-type:\s*([\w.+-]+\/[\w.+-]+)/im.exec(head) ?? [];
  return {
    name: name.slice(0, 64),
    filename: file ? file[1] ?? file[2] ?? "" : null,
    type: type || "application/octet-stream",
    content,
  };
}

function malformed(why: string): ApiError {
  return badRequest(null, `The body is not a form (multipart/form-data): ${why}.`, "invalid_form");
}

/** Writes a form of these texts and lists of texts, and a file. */
export function writeForm(fields: Partial<JsonObject>, file: FormFile): FormBytes {
  let texts = "";
  const boundary = boundaryFor(JSON.stringify(fields), file);
  const add = (name: string, text: string) =>
    texts += `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${text}\r\n`;
  for (const [name, value] of Object.entries(fields)) {
    const key = name.replace(/[^\w.[\]-]/g, "_");
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined && item !== null) add(key, String(item));
    }
  }
  const filename = file.name.replace(/[\p{C}"\\]/gu, "_").slice(-200) || fileField;
  const start = encodeUtf8(
    `${texts}--${boundary}\r\ncontent-disposition: form-data; name="${fileField}"; ` +
      `filename="${filename}"\r\ncontent-type: ${file.type}\r\n\r\n`,
  );
  const end = encodeUtf8(`\r\n--${boundary}--\r\n`);
  const bytes = new Uint8Array(start.length + file.bytes.length + end.length);
  bytes.set(start);
  bytes.set(file.bytes, start.length);
  bytes.set(end, start.length + file.bytes.length);
  return { type: `multipart/form-data; boundary=${boundary}`, bytes };
}

/** A boundary that no sender can write: it depends on all of the content. */
function boundaryFor(texts: string, { bytes }: FormFile): string {
  const digest = createHash("sha256").update(texts).update(bytes).digest("hex");
  return `farebox-${digest.slice(0, 48)}`;
}
