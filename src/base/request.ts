import type { z } from "zod";
import type { BodyShare } from "./body_budget.ts";
import { readBytes } from "./body.ts";
import { ApiError, badRequest } from "./errors.ts";
import { exactNumbersMax } from "./exact_numbers.ts";
import { issueWords } from "./issue_words.ts";
import { boundPassed, isObject, type Json, type JsonObject, parseJson } from "./json.ts";
import { decodeUtf8 } from "./utf8.ts";
import {
  idempotencyKeyCharsMax,
  jsonDepthMax,
  jsonValuesMax,
  pageSizeDefault,
  pageSizeMax,
  paramCharsMax,
  requestIdCharsMax,
} from "./limits.ts";

/** Returns the caller's own request id when it is 1 to 128 visible ASCII characters, else null. */
export function callerRequestId(request: Request): string | null {
  const id = request.headers.get("x-request-id");
  return id && id.length <= requestIdCharsMax && /^[\x21-\x7e]+$/.test(id) ? id : null;
}

/**
 * Checks a query parameter that a lenient decoder has read. Throws 400 where the query is not
 * percent-encoded UTF-8: the decoder then leaves it encoded, which would be another user's name.
 */
export function requireUtf8Query(request: Request, name: string, decoded: string | undefined) {
  if (!decoded?.includes("%")) return decoded;
  try {
    decodeURIComponent(new URL(request.url).search);
  } catch {
    throw badRequest(name, `'${name}' is not percent-encoded UTF-8.`);
  }
  return decoded;
}

/** Returns a cookie's value, or null. */
export function cookieValue(request: Request, name: string): string | null {
  const pairs = (request.headers.get("cookie") ?? "").split(/; */);
  const sent = pairs.find((pair) => pair.startsWith(`${name}=`));
  return sent?.slice(name.length + 1) || null;
}

/**
 * Reads a JSON object of at most `bytesMax`, and its length; `bodies` reserves memory for a large
 * one, or throws 503. Throws 415 when its type is not JSON, 413 when it is too large, 400 when it
 * is not well-formed UTF-8, not JSON, nested too deep, or not an object.
 */
export async function readJsonBody(
  request: Request,
  bytesMax: number,
  bodies?: BodyShare,
): Promise<{ value: JsonObject; bytes: number }> {
  checkType(request);
  return objectIn(await bytesOf(request, bytesMax, bodies), request);
}

/**
 * Reads an optional JSON object of at most `bytesMax`; throws as `readJsonBody` does. An empty body
 * is an empty object, whatever its content type. Only reading shows whether it is empty: over a
 * socket, a POST's `request.body` is never null.
 */
export async function readJsonBodyIfAny(request: Request, bytesMax: number): Promise<JsonObject> {
  const bytes = await bytesOf(request, bytesMax);
  if (bytes.length === 0) return {};
  checkType(request);
  return objectIn(bytes, request).value;
}

/** Reads the bytes of a body of at most `bytesMax`; throws 413 for a larger one. */
export function bytesOf(
  request: Request,
  bytesMax: number,
  bodies?: BodyShare,
): Promise<Uint8Array> {
  const tooLarge = () =>
    new ApiError(413, {
      message: `The body is larger than ${bytesMax} bytes.`,
      code: "request_too_large",
    });
  return readBytes(request, { bytesMax, tooLarge, bodies });
}

function checkType(request: Request): void {
  const type = request.headers.get("content-type");
  if (type !== null && !/^application\/([\w.-]+\+)?json\s*(;|$)/i.test(type)) {
    throw new ApiError(415, {
      message: `The content type must be application/json, not '${type.slice(0, 64)}'.`,
      code: "unsupported_media_type",
    });
  }
}

/** The error for bytes that are not UTF-8, which are often compressed. */
function notUtf8(encoding: string | null): ApiError {
  if (encoding === null || encoding.toLowerCase() === "identity") {
    return badRequest(null, "The body is not well-formed UTF-8.", "invalid_json");
  }
  return new ApiError(415, {
    message: `The body must not be compressed or encoded (Content-Encoding '${
      encoding.slice(0, 64)
    }').`,
    code: "unsupported_media_type",
    // RFC 9110, 12.5.3
    headers: { "accept-encoding": "identity" },
  });
}

function objectIn(bytes: Uint8Array, { headers }: Request): { value: JsonObject; bytes: number } {
  const text = decodeUtf8(bytes);
  if (text === null) throw notUtf8(headers.get("content-encoding"));
  const passed = boundPassed(text, { depthMax: jsonDepthMax, valuesMax: jsonValuesMax });
  if (passed !== null) throw badRequest(null, boundMessages[passed], "invalid_json");
  const value = parseBody(text);
  if (!isObject(value)) {
    throw badRequest(null, "The body must be a JSON object.", "invalid_json");
  }
  return { value, bytes: bytes.length };
}

const boundMessages = {
  depthMax: `The body nests deeper than ${jsonDepthMax} levels.`,
  valuesMax: `The body contains more than ${jsonValuesMax} values.`,
};

const tooManyNumbers =
  `The body contains more than ${exactNumbersMax} integers beyond the precision of a double.`;

function parseBody(text: string): Json {
  try {
    return parseJson(text, () => {
      throw badRequest(null, tooManyNumbers, "invalid_json");
    });
  } catch (error) {
    if (error instanceof ApiError) throw error;
    // The parser's message quotes the body, which must not be logged.
    throw new ApiError(400, {
      message: `We could not parse the JSON body of your request: ${faultIn(text, error)}.`,
      code: null,
    });
  }
}

/** Returns where a text stops being JSON, as far as V8's message tells. */
function faultIn(text: string, error: unknown): string {
  if (text.trim() === "") return "it is empty, but must be a JSON object";
  const [, line, column] = /\(line (\d+) column (\d+)\)$/.exec(String(error)) ?? [];
  if (line === undefined) return "it must be a JSON object";
  return `it must be a JSON object, but line ${line}, column ${column} is not JSON`;
}

/**
 * Parses a value at `place` of a body with a schema. Throws 400 whose `param` and message name the
 * first invalid field.
 */
export function parseWith<S extends z.ZodType>(
  schema: S,
  value: unknown,
  place: readonly PropertyKey[] = [],
): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  if (!issue) throw badRequest(null, "The request is not valid.");
  if (issue.code === "unrecognized_keys") {
    throw unknownParameter([...place, ...issue.path, issue.keys[0] ?? ""]);
  }
  const param = paramAt([...place, ...issue.path]);
  if (issue.code === "invalid_type" && valueAt(value, issue.path) === undefined) {
    throw badRequest(
      param,
      `Missing required parameter: '${param}'.`,
      "missing_required_parameter",
    );
  }
  const code = issue.code === "invalid_type" ? "invalid_type" : "invalid_value";
  throw badRequest(param || null, `Invalid '${param}': ${issueWords(issue)}.`, code);
}

/** 400: a body has a field that its endpoint does not know. */
export function unknownParameter(path: readonly PropertyKey[]): ApiError {
  const param = paramAt(path);
  return badRequest(param, `Unknown parameter: '${param}'.`, "unknown_parameter");
}

/**
 * Throws 400 for a member named `__proto__` at any depth: schemas of records drop it silently.
 */
export function requireNoProto(value: unknown, place: readonly PropertyKey[] = []): void {
  if (typeof value !== "object" || value === null) return;
  if (Object.hasOwn(value, "__proto__")) throw unknownParameter([...place, "__proto__"]);
  for (const [name, inner] of Object.entries(value)) requireNoProto(inner, [...place, name]);
}

/** A field's place, cut to a length: its names come from the caller. */
function paramAt(path: readonly PropertyKey[]): string {
  return path.join(".").slice(0, paramCharsMax);
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let at = value;
  for (const part of path) {
    if (typeof at !== "object" || at === null) return undefined;
    at = Reflect.get(at, part);
  }
  return at;
}

/** The idempotency key, or null when none is sent. Throws 400 when it is malformed. */
export function readIdempotencyKey(request: Request): string | null {
  const key = request.headers.get("idempotency-key");
  if (key === null) return null;
  if (key.length <= idempotencyKeyCharsMax && /^[\x21-\x7e]+$/.test(key)) return key;
  throw badRequest(
    "Idempotency-Key",
    `'Idempotency-Key' must be 1 to ${idempotencyKeyCharsMax} visible ASCII characters.`,
  );
}

/** 422: the idempotency key was used with another body. */
export function idempotencyKeyReused(): ApiError {
  return new ApiError(422, {
    message: "This Idempotency-Key was used before with another request body.",
    code: "idempotency_key_reused",
    param: "Idempotency-Key",
  });
}

/** The requested page size, 1 to 100. Throws 400 otherwise. */
export function readLimit(text: string | undefined): number {
  if (text === undefined) return pageSizeDefault;
  const limit = /^\d{1,4}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= pageSizeMax) return limit;
  throw badRequest("limit", `'limit' must be a whole number from 1 to ${pageSizeMax}.`);
}

/** Returns the query's parameters. Throws 400 where one is given twice. */
export function readQuery(request: Request): Record<string, string> {
  const given = [...new URL(request.url).searchParams];
  const names = given.map(([name]) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) {
    throw badRequest(twice.slice(0, 64), `'${twice.slice(0, 64)}' is given twice.`);
  }
  return Object.fromEntries(given);
}
