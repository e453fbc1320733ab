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
  const first = await firstBytes(body, kind === "events").catch((cause) => {
    throw abortError(call.attempt.controller.signal) ?? upstreamDisconnected(cause);
  });
  if (first.length === 0) throw invalidUpstreamResponse("an empty body");
  call.attempt.meter.bodyBegun = true;
  const error = kind === "events" ? errorAtStart(call, first) : null;
  if (error) {
    body.cancel();
    throw error;
  }
  return {
    start: first,
    rest: body,
    format,
    type: type || "application/octet-stream",
    kind,
  };
}

const firstEventBytesMax = 64 * 1024;
const firstEventPiecesMax = 256;
const wholeEvent = /^data:.*\r?\n\r?\n/m;

/** The first piece of a body; of events, up to the end of the first one that has data. */
async function firstBytes(body: UpstreamBody, areEvents: boolean): Promise<Uint8Array> {
  let bytes = new Uint8Array();
  let pieces = 0;
  for (let piece = await body.read(); piece; piece = await body.read()) {
    const longer = new Uint8Array(bytes.length + piece.length);
    longer.set(bytes);
    longer.set(piece, bytes.length);
    bytes = longer;
    const isEnough = bytes.length > firstEventBytesMax || ++pieces >= firstEventPiecesMax;
    if (!areEvents || isEnough) break;
    if (wholeEvent.test(decodeUtf8(bytes) ?? "")) break;
  }
  return bytes;
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

/** The error that the first event is; null for another. */
function errorAtStart(
  { format, attempt: { target: { upstream: { apiKey } } } }: AdmittedCall,
  bytes: Uint8Array,
) {
  const start = decodeUtf8(bytes) ?? "";
  const event = /^\ufeff?\s*event: ?(\S+)/.exec(start)?.[1];
  const data = /^data: ?([^\r\n]*)/m.exec(start)?.[1];
  return data === undefined ? null : format.errorOf({ event, data, id: undefined }, apiKey);
}
