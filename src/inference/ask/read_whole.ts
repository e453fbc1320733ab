import { type MemoryShare, unsharedBytes } from "../../base/memory_budget.ts";
import type { Secret } from "../../base/secret.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import type { Deps, UpstreamBody } from "../../deps.ts";
import { readBodyStart } from "../../upstreams/client.ts";
import { bridgedReader } from "./bridged_reader.ts";
import {
  createEventReader,
  isLargePart,
  type LargeEventPart,
} from "../../upstreams/event_reader.ts";
import { redactKey } from "../../upstreams/error_body.ts";
import {
  beyondOurBounds,
  errorInBody,
  invalidUpstreamResponse,
  isOurBound,
} from "../../upstreams/errors.ts";
import type { AdmittedCall } from "../call.ts";
import { BodyScan, type Scannable } from "../meter/body_scan.ts";
import type { PassedFormat, TextFormat } from "../format.ts";
import type { CompleteResponse, EventAssembler } from "../upstream_response.ts";
import type { Forwarded } from "./forward.ts";
import type { InferenceServices } from "../services.ts";
import { responseHead } from "../response_head.ts";

/** How a body of server-sent events begins. */
export const isEvents = /^\ufeff?\s*(?:data|event|id|retry)?:/;

/** How many times larger than a parsed body events may be that are read as one response. */
const eventsFactor = 8;
/** The longest error that a body with status 200 is searched for, in bytes. */
const errorBytesMax = 64 * 1024;
const closingBrace = 0x7d;
/** Memory that an event takes besides its text, in characters. */
const eventFrameChars = 256;

/** The start of a body, and the rest of it, unread. */
export interface OpenBody {
  start: Uint8Array;
  rest: UpstreamBody | null;
}

/** A response that passes on as it is. */
export interface LargeBody extends OpenBody {
  /** The format whose responses all pass on; null for a text that is too large to be parsed. */
  format: PassedFormat | null;
  /** The body's content type, where that is not JSON. */
  type?: string;
  /**
   * The kind of body, if not JSON. Only JSON and events are read for the usage that they report.
   */
  kind?: "events" | "text" | "sound";
}

/** A whole response: parsed, or too large for that. */
type WholeBody =
  | { complete: CompleteResponse; large?: never }
  | { complete: null; large: LargeBody };

/** A response that is to be read whole, and the format that reads it. */
interface WholeToRead extends Pick<Forwarded, "body" | "bridge"> {
  format: TextFormat;
  memory: MemoryShare;
}

/**
 * Reads a whole response, also from a server that sends events to a caller who did not ask for
 * them. One that is too large or nested too deep is not parsed. Throws 502 for a body that is no
 * response; the meter then has the usage that has arrived.
 */
export async function readWhole(
  { deps }: Pick<InferenceServices, "deps">,
  call: AdmittedCall,
  { header, format, body, bridge, memory }: WholeToRead & Pick<Forwarded, "header">,
): Promise<WholeBody> {
  const { attempt: { target, meter, controller: { signal } } } = call;
  const { input, upstream: { apiKey } } = target;
  if (/^text\/event-stream/i.test(header("content-type") ?? "")) {
    return { complete: await readAsEvents(deps, call, { format, body, bridge, memory }) };
  }
  const bytesMax = deps.config.upstreamBodyBytesMax;
  const { bytes, isWhole } = await readBodyStart(body, {
    signal,
    fits: (size) => size <= bytesMax && (size <= unsharedBytes || memory.reserve(size)),
    onBegin: () => void (meter.bodyBegun = true),
    onBroken: (start) => scanUsage(call, start, bridge?.format),
  });
  if (isEvents.test(decodeUtf8(bytes.subarray(0, 64)) ?? "")) {
    const again = startingWithBytes(bytes, isWhole ? null : body);
    return { complete: await readAsEvents(deps, call, { format, body: again, bridge, memory }) };
  }
  if (!isWhole) {
    const large = requireObject({ start: bytes, rest: body });
    if (!bridge) return { complete: null, large: { ...large, format: null } };
    await scanLarge(call, large, bridge.format);
    throw beyondOurBounds("a body that is too large to be translated");
  }
  const options = { request: input, head: responseHead(call), apiKey };
  try {
    const own = bridge ? bridge.translateWhole(bytes, options) : bytes;
    return { complete: format.readResponse(own, options) };
  } catch (error) {
    if (bridge || !isOurBound(error)) {
      // By its usage it is known what a failed attempt has cost the project.
      scanUsage(call, bytes, bridge?.format);
      throw error;
    }
    return {
      complete: null,
      large: { ...requireObject({ start: bytes, rest: null }), format: null },
    };
  }
}

/**
 * A response that is never parsed. Throws 502 for an error with status 200, and for a body that has
 * no end.
 */
export function passedOn(bytes: Uint8Array, apiKey: Secret | null): OpenBody {
  const text = decodeUtf8(bytes.subarray(0, errorBytesMax)) ?? "";
  if (/^\ufeff?\s*\{\s*"(error|object":\s*"error)"/.test(text)) {
    throw errorInBody(redactKey(text, apiKey)) ??
      invalidUpstreamResponse("an error with status 200");
  }
  const end = bytes.findLastIndex((byte) => byte > 0x20);
  if (bytes[end] !== closingBrace) throw invalidUpstreamResponse("a JSON body without its end");
  return { start: bytes, rest: null };
}

/** Throws 502 for a body that does not begin as a JSON object does, such as a page. */
export function requireObject(large: OpenBody): OpenBody {
  if (/^\ufeff?\s*\{/.test(new TextDecoder().decode(large.start.subarray(0, 1_024)))) return large;
  large.rest?.cancel();
  throw invalidUpstreamResponse("a large body that is not a JSON object");
}

/** Adds the usage in the start of a body that has broken off. */
function scanUsage(call: AdmittedCall, start: Uint8Array, spoken?: Scannable): void {
  const scan = new BodyScan(call, spoken);
  scan.push(start);
  scan.end();
}

/** Reads a large body to its end for its usage, and keeps nothing else of it. */
export async function scanLarge(
  call: AdmittedCall,
  { start, rest }: OpenBody,
  spoken?: Scannable,
): Promise<void> {
  const scan = new BodyScan(call, spoken);
  try {
    scan.push(start);
    for (let piece = await rest?.read(); piece; piece = await rest?.read()) scan.push(piece);
  } catch {
    // What has arrived is what is known.
  }
  scan.end();
}

/** Reads events as one response. Where they are too large for us, only their usage is read. */
async function readAsEvents(
  { clock, config }: Pick<Deps, "clock" | "config">,
  call: AdmittedCall,
  { format, body, bridge, memory }: WholeToRead,
): Promise<CompleteResponse> {
  const { attempt: { target, meter, controller: { signal } } } = call;
  const { input, upstream: { apiKey } } = target;
  const { upstreamIdleMs: idleMs, upstreamEventBytesMax: eventCharsMax } = config;
  const options = { request: input, head: responseHead(call), apiKey };
  const events = createEventReader(body, { clock, idleMs, eventCharsMax, memory, signal });
  const reader = bridge ? bridgedReader(events, { call, bridge, options }) : events;
  const assembler = format.createAssembler(options);
  const bytesMax = eventsFactor * config.upstreamBodyBytesMax;
  let chars = 0;
  let kept = 0;
  let isTooLarge = false;
  let scan: BodyScan | null = null;
  try {
    for (let read = await reader.next(); read !== "end"; read = await reader.next()) {
      if (read === "silent") continue;
      meter.bodyBegun = true;
      if (isLargePart(read)) {
        isTooLarge = true;
        scan = scanPart(scan ?? new BodyScan(call), read);
        continue;
      }
      for (const event of read) {
        chars += event.data.length;
        kept += Math.max(0, event.data.length - eventFrameChars);
        isTooLarge ||= chars > bytesMax || (kept > unsharedBytes && !memory.reserve(kept));
        assembler.add(event, { usageOnly: isTooLarge });
      }
    }
    if (isTooLarge) throw beyondOurBounds("events that are too large for one response");
    return assembler.complete();
  } catch (error) {
    noteArrived(call, assembler);
    reader.cancel();
    throw error;
  }
}

/** Reads the usage in a part of a large event; returns what reads the next one, if there is one. */
function scanPart(scan: BodyScan, { largeText, isLast }: LargeEventPart): BodyScan | null {
  scan.pushText(largeText);
  if (!isLast) return scan;
  scan.end();
  return null;
}

function noteArrived({ attempt: { meter } }: AdmittedCall, assembler: EventAssembler): void {
  for (const text of assembler.texts()) meter.addText(text);
  for (const usage of assembler.usages) meter.addUsage(usage);
}

function startingWithBytes(start: Uint8Array, rest: UpstreamBody | null): UpstreamBody {
  let isFirst = true;
  return {
    async read() {
      if (!isFirst) return await rest?.read() ?? null;
      isFirst = false;
      return new Uint8Array(start);
    },
    cancel: () => rest?.cancel(),
    finish: () => rest?.finish(),
  };
}
