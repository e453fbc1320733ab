import { ApiError } from "../base/errors.ts";
import { corsHeaders, type HeaderList, textResponse } from "../base/response.ts";
import type { MemoryShare } from "../base/memory_budget.ts";
import { absoluteAmount, type Entry } from "../ledger/entry.ts";
import { isChargedCut } from "./disconnect.ts";
import { largeResponse } from "./large_response.ts";
import { createBalanceNotice } from "./balance_notice.ts";
import {
  type AdmittedCall,
  failedEnding,
  type InferenceDeps,
  targetHeaders,
  usageBody,
  watchCall,
} from "./call.ts";
import type { CompleteResponse } from "./format.ts";
import { forward } from "./forward.ts";
import { askTargets, startTimers } from "./ask_targets.ts";
import { isReroutable } from "../upstreams/errors.ts";
import { fitsIdempotencyStore, storeResponse } from "./idempotency.ts";
import { rateHeaders } from "./rate_limiter.ts";
import { readMade } from "./read_made.ts";
import { BodyScan, type LargeBody, readWhole, type WholeBody } from "./read_whole.ts";
import { noteComplete } from "./note_complete.ts";
import { noteMade } from "./note_made.ts";
import { releaseCall, settleCall } from "./settle.ts";

/**
 * A response that is not streamed: forward, meter, settle, respond. It is read to its end and
 * charged exactly, also when the client has disconnected. Throws the error for the caller; then
 * nothing is charged, unless our own bounds ended what the upstream had begun.
 */
export async function wholeResponse(
  services: InferenceDeps,
  call: AdmittedCall,
): Promise<Response> {
  const memory = services.responseMemory.share();
  const stopWatching = watchCall(services, call);
  const end = () => {
    stopWatching();
    memory.release();
  };
  let isLarge = false;
  try {
    const receiving = askTargets(services, call, () => receive(services, call, memory));
    const { complete, large } = await receiving.catch((error) => endFailed(services, call, error));
    if (complete) return await chargedResponse(services, call, complete);
    if (large.rest === null) return await passedResponse(services, call, large);
    isLarge = true;
    const freeBody = call.bodies.keep(call.request);
    const freePlace = call.place.keep();
    memory.release();
    return largeResponse(services, call, {
      large,
      onEnd() {
        end();
        freeBody();
        freePlace();
      },
    });
  } finally {
    if (!isLarge) end();
  }
}

async function chargedResponse(
  services: InferenceDeps,
  call: AdmittedCall,
  complete: CompleteResponse,
): Promise<Response> {
  const { meter } = call;
  if (complete.error) return await endFailed(services, call, complete.error, meter.producedOutput);
  if (call.cache) call.cache.response = complete;
  const usage = await meter.usage();
  const notice = await createBalanceNotice(services, call);
  let body = "";
  let headers: HeaderList = {};
  await settleCall(services, call, {
    usage,
    ending: { kind: "completed" },
    kept: complete.kept ?? null,
    alongside(tx, entry) {
      const balance = entry.balanceAfter;
      headers = { ...chargeHeaders(entry), ...targetHeaders(call) };
      body = complete.write({ usage: usageBody(call, { usage, entry }), notice, balance });
      const { idempotency, ref } = call;
      if (idempotency) storeResponse(tx, idempotency, { ref, response: { headers, body } });
    },
  });
  const isTooLarge = call.idempotency && !fitsIdempotencyStore(body);
  const stored = isTooLarge ? { "idempotency-stored": "false" } : {};
  const more = { ...headers, ...rateHeaders(call.rateLimits), ...stored };
  return completionResponse(body, call.requestId, more);
}

/** A response that has arrived whole and is passed on as it is; charged by what it reports. */
async function passedResponse(
  services: InferenceDeps,
  call: AdmittedCall,
  { start: bytes, type, kind }: LargeBody,
): Promise<Response> {
  const { meter, format, idempotency, ref } = call;
  call.telemetry.begin("meter");
  const body = new TextDecoder().decode(bytes);
  const text = format.made?.textOf?.(body, kind !== "text");
  if (text !== undefined) meter.addText(text);
  if (kind !== "text") {
    const scan = new BodyScan(call);
    scan.push(bytes);
    scan.end();
  }
  if (!format.isPassedOn) meter.noteUnreadOutput();
  else noteMade(call, { start: bytes, bytes: bytes.length, isCounted: text !== undefined });
  let headers: HeaderList = type === undefined ? {} : { "content-type": type };
  await settleCall(services, call, {
    usage: await meter.usage(),
    ending: { kind: "completed" },
    alongside(tx, entry) {
      headers = { ...headers, ...chargeHeaders(entry), ...targetHeaders(call) };
      if (idempotency) storeResponse(tx, idempotency, { ref, response: { headers, body } });
    },
  });
  const isTooLarge = idempotency && !fitsIdempotencyStore(body);
  const more = {
    ...headers,
    ...rateHeaders(call.rateLimits),
    ...(isTooLarge ? { "idempotency-stored": "false" } : {}),
    ...(format.isPassedOn ? {} : { "x-service-unparsed": "true" }),
  };
  return completionResponse(body, call.requestId, more);
}

/**
 * Ends a call without a response, and throws the error for its caller. With `isCharged`, as after a
 * cut by our own bounds, what is known of it is charged; the caller is told not to repeat it, and a
 * request under the same idempotency key gets the same error without another charge.
 */
async function endFailed(
  services: InferenceDeps,
  call: AdmittedCall,
  error: unknown,
  isCharged = isChargedCut(call, error),
): Promise<never> {
  const { meter, idempotency, telemetry, ref } = call;
  telemetry.countError(error);
  if (!isCharged) {
    await releaseCall(services, call, failedEnding(error));
    throw error;
  }
  let shown = error;
  await settleCall(services, call, {
    usage: await meter.usage(),
    ending: failedEnding(error),
    alongside(tx, entry) {
      if (!(error instanceof ApiError)) return;
      const told = error.with({ ...chargeHeaders(entry), "x-should-retry": "false" });
      shown = told;
      const { status, headers } = told;
      const { errorBody } = call.format;
      const shownBody = errorBody ? errorBody(told, call.requestId) : told.body();
      const response = { status, headers, body: JSON.stringify(shownBody) };
      if (idempotency) storeResponse(tx, idempotency, { ref, response });
    },
  });
  throw shown;
}

/** A response body as it is sent, the first time or replayed. */
export function completionResponse(
  body: string,
  requestId: string,
  more: HeaderList,
  status = 200,
): Response {
  const headers = {
    ...corsHeaders,
    "content-type": "application/json",
    "x-request-id": requestId,
    ...more,
  };
  return textResponse(status, body, headers);
}

function chargeHeaders(entry: Entry): HeaderList {
  return {
    "x-service-activity-id": entry.id,
    "x-service-cost": absoluteAmount(entry),
    "x-service-balance": entry.balanceAfter,
  };
}

/** Reads the response of one attempt, and what it has used. */
async function receive(
  services: InferenceDeps,
  call: AdmittedCall,
  memory: MemoryShare,
): Promise<WholeBody> {
  const { telemetry, cache, format: { made }, target: { upstream: { name: upstream } } } = call;
  if (cache?.hit) {
    noteComplete(call.meter, cache.hit.complete);
    return { complete: cache.hit.complete };
  }
  startTimers(services, call);
  telemetry.begin("forward", { upstream });
  const response = await forward(call);
  if (!made) {
    const body = await readWhole(services, call, { ...response, memory });
    const { complete } = body;
    if (complete) {
      telemetry.begin("meter");
      noteComplete(call.meter, complete);
      // Another target may answer.
      if (call.untried.length > 0 && isReroutable(complete.error)) throw complete.error;
    }
    return body;
  }
  const bytesMax = services.deps.config.upstreamBodyBytesMax;
  return { complete: null, large: await readMade(call, made, { ...response, bytesMax, memory }) };
}
