import { ApiError } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { upstreamErrorBytesMax } from "../base/limits.ts";
import type { UpstreamBody, UpstreamResponse } from "../deps.ts";
import { inflated } from "../http/inflate.ts";
import { bodyFor, type PreparedBody } from "../inference/prepared_body.ts";
import { correctedDialect, type DialectCall, rememberDialect } from "./dialect.ts";
import type { CallTelemetry } from "../inference/telemetry.ts";
import {
  invalidUpstreamResponse,
  readUpstreamError,
  redactKey,
  toCallerError,
  upstreamDisconnected,
  upstreamTimeout,
  upstreamUnreachable,
} from "./errors.ts";
import type { Upstream } from "./upstreams.ts";

/** One call of an upstream. */
export interface UpstreamCall extends DialectCall {
  upstream: Upstream;
  firstRequest: PreparedBody;
  requestId: string;
  /** Headers of our caller that go on. */
  headers: Record<string, string>;
  /** Ends the call; its reason is what the caller is told. */
  signal: AbortSignal;
  /** Told when the server is about to be sent something. */
  onSend?: (() => void) | undefined;
}

/** A server is asked again without what it refused, at most this often. */
const correctionsMax = 6;

/**
 * Sends a chat to its upstream and gives the 200 it answers with, its body unread. Throws what our
 * caller is to see: see `toCallersError`; 504 after the deadline, 502 when it cannot be reached.
 */
export async function callUpstream(
  call: UpstreamCall,
  span: CallTelemetry["span"],
): Promise<UpstreamResponse> {
  const { upstream, chat } = call;
  let { manner, body } = await call.firstRequest.take(call.cap);
  for (let correction = 0;; correction++) {
    const said = body;
    // So that the call itself is a part of the span that it is made in.
    const response = await (span ? span.run(() => send(call, said)) : send(call, said));
    if (response.status === 200) {
      // Only what has helped is remembered: a refusal may quote what the caller wrote.
      if (correction > 0) rememberDialect(upstream, chat, manner);
      return response;
    }
    const text = redactKey(await errorText(response, call.signal), upstream.apiKey);
    const fault = readUpstreamError(response.status, text);
    const other = correction < correctionsMax
      ? await correctedDialect(call, { manner, fault: fault.behind ?? fault })
      : null;
    if (!other) throw toCallerError(fault, response.header("retry-after"));
    manner = other;
    body = bodyFor(call, manner);
  }
}

async function send(call: UpstreamCall, body: string): Promise<UpstreamResponse> {
  const { upstream, requestId, signal, onSend } = call;
  const authorization = upstream.apiKey
    ? { authorization: `Bearer ${upstream.apiKey.reveal()}` }
    : {};
  try {
    const response = await upstream.ask({
      url: `${upstream.url}/chat/completions`,
      method: "POST",
      body,
      headers: {
        ...call.headers,
        ...authorization,
        "content-type": "application/json",
        accept: call.chat.stream ? "text/event-stream" : "application/json",
        // Compressed answers inflate without bound, and buffer what should stream.
        "accept-encoding": "identity",
        "x-request-id": requestId,
      },
      signal,
      onSend,
    });
    return inflated(response, signal);
  } catch (cause) {
    throw abortError(signal) ?? upstreamUnreachable(cause);
  }
}

async function errorText({ body }: UpstreamResponse, signal: AbortSignal): Promise<string> {
  try {
    return decodeUtf8(await readUpstreamBody(body, upstreamErrorBytesMax, signal)) ?? "";
  } catch {
    return "";
  }
}

/** So much of a body, after any blanks, tells what it is; and the most that is read to find it. */
const tellingChars = 8;
const peekedCharsMax = 4 * 1024;

/**
 * How a body begins, as text, and the same body with all that it had: its first pieces may be blank,
 * or end within a word. Throws as `readBody` does.
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

/** Reads a body of at most `bytesMax`. Throws 502 when it is larger or breaks off. */
export async function readUpstreamBody(
  body: UpstreamBody,
  bytesMax: number,
  signal: AbortSignal,
): Promise<Uint8Array> {
  let whole = new Uint8Array();
  let length = 0;
  try {
    for (let piece = await body.read(); piece; piece = await body.read()) {
      if (length + piece.length > bytesMax) {
        body.cancel();
        throw invalidUpstreamResponse(`an answer of more than ${bytesMax} bytes`);
      }
      if (length + piece.length > whole.length) {
        const larger = new Uint8Array(length === 0 ? piece.length : 2 * (length + piece.length));
        larger.set(whole.subarray(0, length));
        whole = larger;
      }
      whole.set(piece, length);
      length += piece.length;
    }
    signal.throwIfAborted();
  } catch (cause) {
    if (cause instanceof ApiError) throw cause;
    throw abortError(signal) ?? upstreamDisconnected(cause);
  }
  return whole.subarray(0, length);
}

/** What an aborted signal was aborted for, as the error to tell; null when it was not. */
export function abortError(signal: AbortSignal): ApiError | null {
  if (!signal.aborted) return null;
  return signal.reason instanceof ApiError ? signal.reason : upstreamTimeout(signal.reason);
}
