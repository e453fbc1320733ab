import { createParser, type EventSourceMessage } from "eventsource-parser";
import { type MemoryShare, unsharedBytes } from "../../base/memory_budget.ts";
import type { UpstreamBody } from "../../deps.ts";
import { headerValue } from "../../base/response.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import { abortError, peekBody, readBodyStart } from "../../upstreams/client.ts";
import { invalidUpstreamResponse, upstreamDisconnected } from "../../upstreams/errors.ts";
import type { AdmittedCall } from "../call.ts";
import type { BodyTypes, PassedFormat } from "../format.ts";
import type { Forwarded } from "./forward.ts";
import { BodyScan } from "../meter/body_scan.ts";
import { type LargeBody, type OpenBody, passedOn, requireObject } from "./read_whole.ts";

type PassedResponse = Pick<Forwarded, "header" | "body"> & {
  bytesMax: number;
  memory: MemoryShare;
};

/**
 * Reads a response that passes on as it is. JSON and texts are read whole, as far as they fit;
 * sound and events pass on as they arrive. Throws 502 for another type and for an empty body, and
 * the error that a body states.
 */
export async function readPassed(
  call: AdmittedCall,
  format: PassedFormat,
  response: PassedResponse,
): Promise<LargeBody> {
  const type = headerValue(response.header("content-type") ?? "");
  const { start, body } = await peekBody(response.body, call.attempt.controller.signal);
  const kind = kindOf(format.bodies, type.toLowerCase(), start);
  if (kind === null) {
    body.cancel();
    throw invalidUpstreamResponse(`a body of the type '${type}'`);
  }
  if (kind === "json" || kind === "text") {
    const whole = await readStart(call, { ...response, body });
    if (kind === "text") return { ...whole, format, type, kind };
    const { apiKey } = call.attempt.target.upstream;
    return { ...requireObject(whole.rest ? whole : passedOn(whole.start, apiKey)), format };
  }
  const first = kind === "events"
    ? await throughPreamble(call, body)
    : await nextBytes(call, body) ?? new Uint8Array();
  if (first.length === 0) throw invalidUpstreamResponse("an empty body");
  return {
    start: first,
    rest: body,
    format,
    type: type || "application/octet-stream",
    kind,
  };
}

/** The most bytes and pieces of events without output that are held back. */
const heldBytesMax = 64 * 1024;
const heldPiecesMax = 256;

/** The next piece of a body; null at its end. */
async function nextBytes(
  { attempt: { meter, controller: { signal } } }: AdmittedCall,
  body: UpstreamBody,
): Promise<Uint8Array | null> {
  try {
    const piece = await body.read();
    if (piece) meter.bodyBegun = true;
    return piece && piece.slice();
  } catch (cause) {
    throw abortError(signal) ?? upstreamDisconnected(cause);
  }
}

/**
 * Reads events up to the first one that has output, which is the last of these bytes. Throws the
 * error that comes before any, and 502 where the body ends without.
 */
async function throughPreamble(call: AdmittedCall, body: UpstreamBody): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (let piece = await nextBytes(call, body); piece; piece = await nextBytes(call, body)) {
      pieces.push(piece);
      bytes += piece.length;
      const held = concat(pieces);
      const isEnough = bytes > heldBytesMax || pieces.length >= heldPiecesMax;
      if (hasOutput(call, held) || isEnough) return held;
    }
  } catch (error) {
    body.cancel();
    throw error;
  }
  throw invalidUpstreamResponse(bytes === 0 ? "an empty body" : "events without output");
}

/** Whether events that have arrived whole have output. Throws the error that comes before it. */
function hasOutput(
  { format, attempt: { target: { upstream: { apiKey } } } }: AdmittedCall,
  bytes: Uint8Array,
): boolean {
  const events: EventSourceMessage[] = [];
  createParser({ onEvent: (event) => void events.push(event) }).feed(decodeUtf8(bytes) ?? "");
  for (const event of events) {
    const error = format.errorOf(event, apiKey);
    if (error) throw error;
    const isPreamble = event.data === "[DONE]" || beginning.test(event.data);
    if (!isPreamble || written.test(event.data)) return true;
  }
  return false;
}

/** An event that begins something, or continues it. */
const beginning = /"type"\s*:\s*"(?:ping|[\w.]+\.(?:delta|created|in_progress))"/;
/** A text, a sound or an image that is not empty. */
const written = /"(?:delta|text|audio|b64_json)"\s*:\s*"[^"]/;

function concat(pieces: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

function kindOf(
  bodies: BodyTypes | null,
  type: string,
  start: string,
): NonNullable<LargeBody["kind"]> | "json" | null {
  const begins = (name: string) => type.startsWith(name);
  const { texts, streamed } = bodies ?? { texts: [], streamed: [] };
  if (bodies && begins("text/event-stream")) return "events";
  if (/^application\/([\w.-]+\+)?json/.test(type)) return "json";
  if (streamed.some(begins)) return "sound";
  if (texts.some(begins)) return "text";
  // Some servers leave the type out.
  if (/^\ufeff?\s*\{/.test(start)) return "json";
  return type === "" && streamed.length > 0 && !/^\s*</.test(start) ? "sound" : null;
}

async function readStart(
  call: AdmittedCall,
  { body, bytesMax, memory }: PassedResponse,
): Promise<OpenBody> {
  const { meter, controller: { signal } } = call.attempt;
  const { bytes, isWhole } = await readBodyStart(body, {
    signal,
    fits: (size) => size <= bytesMax && (size <= unsharedBytes || memory.reserve(size)),
    onBegin: () => void (meter.bodyBegun = true),
    onBroken(start) {
      const scan = new BodyScan(call);
      scan.push(start);
      scan.end();
    },
  });
  return { start: bytes, rest: isWhole ? null : body };
}
