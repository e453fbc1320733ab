import type { ApiError } from "./errors.ts";

/** Headers of one response, lower case. */
export type HeaderList = Record<string, string>;

/** Lets pages of any origin call, and read response headers. */
export const corsHeaders: HeaderList = {
  "access-control-allow-origin": "*",
  "access-control-expose-headers": "*",
};

/** A JSON response. Every response has a request id. */
export function jsonResponse(
  status: number,
  body: unknown,
  requestId: string,
  headers?: HeaderList,
): Response {
  return jsonTextResponse(status, JSON.stringify(body), requestId, headers);
}

/** A response of JSON that is written already. */
export function jsonTextResponse(
  status: number,
  json: string,
  requestId: string,
  headers?: HeaderList,
): Response {
  const named = { "content-type": "application/json", "x-request-id": requestId, ...headers };
  return textResponse(status, json, named);
}

/** A text response with these headers. */
export function textResponse(status: number, text: string, headers: HeaderList): Response {
  const response = new Response(text, { status });
  // Headers given to the constructor become an object of Deno's server at once, which its garbage
  // collector then has to track: 3 of the 25 µs that a response takes.
  for (const [name, value] of Object.entries(headers)) response.headers.set(name, value);
  // With a content length, Deno's server writes the head and a body of more than 512 bytes
  // separately, and each write costs 8 of the 120 µs that a chat takes. For HTTP/1.0 and HTTP/2 it
  // still sends the length.
  response.headers.set("transfer-encoding", "chunked");
  return response;
}

/** Writes the body of an error for clients of another API than OpenAI's. */
export type WriteErrorBody = (error: ApiError, requestId: string) => unknown;

/** An error body, OpenAI's unless told otherwise, with the headers of the error. */
export function errorResponse(
  error: ApiError,
  requestId: string,
  { headers, writeBody }: {
    headers?: HeaderList | undefined;
    writeBody?: WriteErrorBody | undefined;
  },
): Response {
  const body = writeBody ? writeBody(error, requestId) : error.body();
  return jsonResponse(error.status, body, requestId, { ...headers, ...error.headers });
}

/** The most characters of a header value that is not ours. */
const headerCharsMax = 4_096;

/**
 * Encodes a text as the value of a header: visible ASCII and spaces within stay, all else is
 * percent-encoded as UTF-8, so that a URL stays one. A long text is cut. Never throws. For every
 * text that a caller, an upstream or an owner has written.
 */
export function headerValue(text: string): string {
  const whole = text.length > headerCharsMax ? text.slice(0, headerCharsMax) : text;
  if (/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(whole)) return whole;
  return whole.toWellFormed().replace(/^ +| +$|[^\x20-\x7e]+/g, encodeURIComponent);
}

/**
 * Decodes a header value as strict UTF-8; null when it is not. Fetch passes header bytes on as
 * Latin-1.
 */
export function headerText(value: string): string | null {
  // deno-lint-ignore no-control-regex -- this is what ASCII is
  if (/^[\x00-\x7f]*$/.test(value)) return value;
  try {
    const bytes = Uint8Array.from(value, (character) => character.charCodeAt(0));
    // A byte order mark counts as a character: it makes a different name.
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

/**
 * Sets the content length of a response to HEAD and cancels its body: Hono sends no body and leaves
 * it unread, so its source would wait for a reader. The length of a body in several pieces is
 * unknown.
 */
export async function measureBody({ body, headers }: Response): Promise<void> {
  if (!body) return;
  if (headers.has("content-length")) return await body.cancel();
  const reader = body.getReader();
  const { value, done } = await reader.read();
  // A text is one piece.
  if (done || (await reader.read()).done) headers.set("content-length", String(value?.length ?? 0));
  else await reader.cancel();
}

/** Keeps Deno from sending a content length of 0 where the length is unknown. */
export async function withUnknownLength(answering: Response | Promise<Response>) {
  const answer = await answering;
  if (answer.status !== 200 || answer.headers.has("content-length")) return answer;
  const nothing = new ReadableStream({ start: (controller) => controller.close() });
  return new Response(nothing, answer);
}
