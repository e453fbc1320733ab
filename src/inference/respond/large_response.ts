import type { Clock } from "../../base/clock.ts";
import { TimeSlice } from "../../base/time_slice.ts";
import { formatAmount } from "../../base/money.ts";
import { tokenCounts } from "../../base/token_classes.ts";
import { pricesOnlyUnits } from "../../pricing/price.ts";
import { corsHeaders, type HeaderList } from "../../base/response.ts";
import { activityIdOfRequest } from "../../ledger/entry.ts";
import { abortError } from "../../upstreams/client.ts";
import { upstreamDisconnected } from "../../upstreams/errors.ts";
import { type AdmittedCall, billOf, type InferenceDeps, targetHeaders } from "../call.ts";
import { noteOutcome } from "../ask/ask_targets.ts";
import { noteMade } from "../meter/note_made.ts";
import { endingOf, isOurFault } from "../finish/disconnect.ts";
import { endEarly } from "../finish/end_early.ts";
import { removeIdempotencyMark } from "../receive/idempotency.ts";
import { PacedBody } from "./paced_body.ts";
import { rateHeaders } from "../admit/rate_limiter.ts";
import { BodyScan } from "../meter/body_scan.ts";
import type { LargeBody } from "../ask/read_whole.ts";
import { settleCall } from "../finish/settle.ts";

/** The headers of such a response, as far as they are known before its charge. */
export function largeHeaders(
  services: InferenceDeps,
  call: AdmittedCall,
  { type }: LargeBody,
): Headers {
  return new Headers({
    ...corsHeaders,
    "content-type": type ?? "application/json",
    "x-request-id": call.requestId,
    ...knownCost(services, call),
    "x-service-activity-id": activityIdOfRequest(call.id),
    ...(call.format.isPassedOn ? {} : { "x-service-unparsed": "true" }),
    ...rateHeaders(call.rateLimits),
    ...targetHeaders(call),
    ...(call.idempotency ? { "idempotency-stored": "false" } : {}),
  });
}

/**
 * A whole response that is too large to be parsed: its bytes are passed on as they arrive, and what
 * it costs is read from them. It is charged before its last bytes are sent, also when its client
 * has disconnected. `onEnd` is called after that.
 */
export function largeResponse(
  services: InferenceDeps,
  call: AdmittedCall,
  { large, headers, onEnd }: { large: LargeBody; headers: Headers; onEnd: () => void },
): Response {
  const { request, controller: { signal } } = call;
  const { clock } = services.deps;
  const body = new PacedBody({ clock, request, signal, onDisconnect() {} });
  const removeStream = services.running.addStream();
  const stream = body.start(async () => {
    try {
      await pass(services, call, { large, body });
    } catch (error) {
      // Nobody has read what has passed to its end.
      call.meter.noteUnreadOutput();
      await endEarly(services, call, error).catch(() => {});
      body.breakOff(error);
    } finally {
      removeStream();
      onEnd();
    }
  });
  return new Response(stream, { headers });
}

async function pass(
  services: InferenceDeps,
  call: AdmittedCall,
  { large: { start, rest, kind }, body }: { large: LargeBody; body: PacedBody },
): Promise<void> {
  const { clock } = services.deps;
  // What sound and plain text say is content.
  const scan = kind === "sound" || kind === "text" ? null : new BodyScan(call);
  let last = start;
  let bytes = start.length;
  let broken: unknown = null;
  const { signal } = call.controller;
  const next = async () => {
    try {
      return await rest?.read();
    } catch (cause) {
      throw abortError(signal) ?? upstreamDisconnected(cause);
    }
  };
  try {
    if (scan) await scanInSlices(scan, start, clock);
    for (let piece = await next(); piece; piece = await next()) {
      body.send(last);
      // A piece is valid until the next read only, and the last one is sent after the charge.
      last = piece.slice();
      bytes += last.length;
      scan?.push(last);
      if (kind === "events" && !mayEnd(last)) {
        body.send(last);
        last = nothing;
      }
      await body.untilDemand();
    }
    signal.throwIfAborted();
  } catch (error) {
    if (isOurFault(error)) throw error;
    broken = error;
    call.telemetry.countError(broken);
    if (call.isRouted) noteOutcome(services, call, broken);
  }
  scan?.end();
  if (!call.format.isPassedOn) call.meter.noteUnreadOutput();
  else noteMade(call, { start, bytes });
  await settleCall(services, call, {
    usage: await call.meter.usage(),
    ending: endingOf(broken),
    alongside: (tx) => void (call.idempotency && removeIdempotencyMark(tx, call.idempotency)),
  });
  if (broken) return body.breakOff(broken);
  body.send(last);
  body.close();
}

const nothing = new Uint8Array();

/** Whether a piece of events may hold their last one. The others are sent as they arrive. */
function mayEnd(piece: Uint8Array): boolean {
  return /\.done"|\.completed"|"usage"|\[DONE\]|error/.test(new TextDecoder().decode(piece));
}

/** The cost, where the request alone decides it. */
function knownCost(services: InferenceDeps, call: AdmittedCall): HeaderList {
  const { format: { made }, target: { terms: { price } }, meter } = call;
  meter.producedOutput = true;
  if (made?.unit !== "characters" || !pricesOnlyUnits(price)) return {};
  const usage = { ...tokenCounts({}), source: "provider" as const };
  return { "x-service-cost": formatAmount(billOf(services, call, usage).cost) };
}

/** Bytes that are scanned before other requests may run. */
const scannedAtOnce = 256 * 1024;

async function scanInSlices(scan: BodyScan, bytes: Uint8Array, clock: Clock): Promise<void> {
  const slice = new TimeSlice(clock);
  for (let from = 0; from < bytes.length; from += scannedAtOnce) {
    if (slice.expired) await slice.yield();
    scan.push(bytes.subarray(from, from + scannedAtOnce));
  }
}
