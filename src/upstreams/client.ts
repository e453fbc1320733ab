import { ApiError } from "../base/errors.ts";
import type { FormBytes } from "../base/form_body.ts";
import { upstreamErrorBytesMax } from "../base/limits.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { Deps, UpstreamBody, UpstreamRequest, UpstreamResponse } from "../deps.ts";
import { inflated } from "../http/inflate.ts";
import { type EndpointAt, endpointUrl, upstreamHeaders } from "./address.ts";
import {
  correctedDialect,
  type Dialect,
  type DialectCall,
  dialectFor,
  isThinkingTooLong,
  isUnserved,
  learnFrom,
} from "./dialect.ts";
import { readUpstreamError, redactKey } from "./error_body.ts";
import {
  beyondOurBounds,
  thinkingTooLong,
  toCallerError,
  upstreamDisconnected,
  upstreamTimeout,
  upstreamUnreachable,
} from "./errors.ts";
import type { Upstream } from "./upstream.ts";

/** One call of an upstream. */
interface UpstreamCall extends DialectCall {
  upstream: Upstream;
  endpoint(dialect: Dialect): EndpointAt;
  /** The request's body: JSON text, or a form. */
  writeBody(dialect: Dialect): string | FormBytes;
  /** Media types that are accepted; absent: JSON, or events for a stream. */
  accept?: string | undefined;
  /** The error for an upstream without the endpoint; absent: the upstream's own error. */
  unserved?: (() => Error) | undefined;
  /**
   * Our own id of the call. A caller's id could equal another one's, and some servers hang then.
   */
  id: string;
  /** Headers besides those of every call. */
  headers(dialect: Dialect): Record<string, string>;
  /** Ends the call; its reason is the error that the caller gets. */
  signal: AbortSignal;
  /** Called as the client of src/http/ calls it. */
  onSend?: UpstreamRequest["onSend"];
}

/** The span that a call is a part of, where tracing is on. */
type CallSpan = ReturnType<NonNullable<Deps["tracing"]>["within"]> | null;

/** Retries of one call in another dialect. */
const correctionsMax = 6;

/**
 * Calls an upstream and gives its 200 response, the body unread, and the dialect that it took.
 * Throws the error for our caller as `toCallerError` makes it; 504 after the deadline, 502 when no
 * connection can be made.
 */
export async function callUpstream(
  call: UpstreamCall,
  span: CallSpan,
): Promise<{ response: UpstreamResponse; dialect: Dialect }> {
  const { upstream, signal } = call;
  const first = dialectFor(call);
  let dialect = first;
  for (let corrections = 0;; corrections++) {
    const body = call.writeBody(dialect);
    const response = await (span
      ? span.run(() => send(call, body, dialect))
      : send(call, body, dialect));
    if (response.status === 200) {
      learnFrom(call, { first, taken: dialect });
      return { response, dialect };
    }
    const text = redactKey(await errorText(response, signal), upstream.apiKey);
    const error = readUpstreamError(response.status, text);
    const refused = { dialect, error: error.behind ?? error };
    const corrected = corrections < correctionsMax ? await correctedDialect(call, refused) : null;
    if (!corrected) {
      const budget = call.input.thinkingBudget;
      if (budget !== null && isThinkingTooLong(call, refused)) {
        throw thinkingTooLong(budget, `upstream status ${error.status}: ${error.message}`);
      }
      const isUnknown = isUnserved(error) && !upstream.learned.hasServed(dialect.format);
      if (call.unserved && isUnknown) throw call.unserved();
      throw toCallerError(error, response.header("retry-after"));
    }
    dialect = corrected;
  }
}

function send(
  call: UpstreamCall,
  body: string | FormBytes,
  dialect: Dialect,
): Promise<UpstreamResponse> {
  const { upstream, endpoint, id, input, signal, onSend } = call;
  const isForm = typeof body !== "string";
  return upstream.request({
    url: endpointUrl(upstream, endpoint(dialect), input.model),
    method: "POST",
    body: isForm ? body.bytes : body,
    headers: {
      ...upstreamHeaders(upstream),
      ...call.headers(dialect),
      "content-type": isForm ? body.type : "application/json",
      accept: call.accept ?? (input.stream ? "text/event-stream" : "application/json"),
      // Compressed responses inflate without bound, and buffer what should stream.
      "accept-encoding": "identity",
      "x-request-id": id,
    },
    signal,
    owner: upstream.owner,
    onSend,
  }).then((response) => inflated(response, signal)).catch((cause) => {
    throw abortError(signal) ?? upstreamUnreachable(cause);
  });
}

async function errorText({ body }: UpstreamResponse, signal: AbortSignal): Promise<string> {
  try {
    return decodeUtf8(await readUpstreamBody(body, upstreamErrorBytesMax, signal)) ?? "";
  } catch {
    return "";
  }
}

/** The characters by which a body's kind is told, after leading spaces. */
const tellingChars = 8;
const peekedCharsMax = 4 * 1024;

/**
 * Gives the start of a body as text, and the same body unread. The first pieces may be only spaces,
 * or end within a word. Throws as `readUpstreamBody` does.
 */
export async function peekBody(
  body: UpstreamBody,
  signal: AbortSignal,
): Promise<{ start: string; body: UpstreamBody }> {
  const decoder = new TextDecoder();
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let start = "";
  try {
    while (start.trimStart().length < tellingChars && start.length < peekedCharsMax) {
      const piece = await body.read();
      if (!piece) break;
      pieces.push(piece.slice());
      start += decoder.decode(piece, { stream: true });
    }
  } catch (cause) {
    throw abortError(signal) ?? upstreamDisconnected(cause);
  }
  return { start, body: { ...body, read: async () => pieces.shift() ?? await body.read() } };
}

/** Reads a body of at most `bytesMax`. Throws 502 when it is larger or ends early. */
export async function readUpstreamBody(
  body: UpstreamBody,
  bytesMax: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  const { bytes, isWhole } = await readBodyStart(body, {
    signal,
    fits: (size) => size <= bytesMax,
  });
  if (isWhole) return bytes;
  body.cancel();
  throw beyondOurBounds(`an answer of more than ${bytesMax} bytes`);
}

interface BodyStartOptions {
  signal: AbortSignal;
  /** Whether memory suffices to keep a body of this many bytes. */
  fits(bytes: number): boolean;
  /** Called when the first bytes have arrived. */
  onBegin?(): void;
  /** Called with the bytes that had arrived when the body broke off. */
  onBroken?(bytes: Uint8Array): void;
}

/**
 * Reads a body as far as it fits, and leaves the rest unread. Throws 502 when it ends early, and
 * the signal's reason when it is aborted.
 */
export async function readBodyStart(
  body: UpstreamBody,
  { signal, fits, onBegin, onBroken }: BodyStartOptions,
): Promise<{ bytes: Uint8Array; isWhole: boolean }> {
  let buffer = new Uint8Array();
  let length = 0;
  try {
    for (let piece = await body.read(); piece; piece = await body.read()) {
      if (length === 0) onBegin?.();
      const needed = length + piece.length;
      if (needed > buffer.length) {
        const larger = new Uint8Array(length === 0 ? needed : 2 * needed);
        larger.set(buffer.subarray(0, length));
        buffer = larger;
      }
      buffer.set(piece, length);
      length = needed;
      if (!fits(length)) return { bytes: buffer.subarray(0, length), isWhole: false };
    }
    signal.throwIfAborted();
  } catch (cause) {
    onBroken?.(buffer.subarray(0, length));
    throw abortError(signal) ?? upstreamDisconnected(cause);
  }
  return { bytes: buffer.subarray(0, length), isWhole: true };
}

/** The reason of an aborted signal as an error for the caller; null when it is not aborted. */
export function abortError(signal: AbortSignal): ApiError | null {
  if (!signal.aborted) return null;
  return signal.reason instanceof ApiError ? signal.reason : upstreamTimeout(signal.reason);
}
