import { ApiError, internalError } from "../../base/errors.ts";
import { corsHeaders, type HeaderList, textResponse } from "../../base/response.ts";
import type { MemoryShare } from "../../base/memory_budget.ts";
import { absoluteAmount, type Entry } from "../../ledger/entry.ts";
import { isChargedCut, isOurFault } from "../finish/disconnect.ts";
import { knownUsage, stopOnFault } from "../finish/end_early.ts";
import { largeHeaders, largeResponse } from "./large_response.ts";
import { createBalanceNotice } from "./balance_notice.ts";
import {
  type AdmittedCall,
  failedEnding,
  type InferenceDeps,
  targetHeaders,
  usageBody,
  watchCall,
} from "../call.ts";
import type { CompleteResponse, KeptIds } from "../format.ts";
import { forward } from "../ask/forward.ts";
import { askTargets, startTimers } from "../ask/ask_targets.ts";
import { isReroutable } from "../../upstreams/errors.ts";
import {
  fitsIdempotencyStore,
  type StoredResponse,
  storeResponse,
} from "../receive/idempotency.ts";
import { rateHeaders } from "../admit/rate_limiter.ts";
import { readMade } from "../ask/read_made.ts";
import { BodyScan } from "../meter/body_scan.ts";
import { type LargeBody, readWhole, type WholeBody } from "../ask/read_whole.ts";
import { noteComplete } from "../meter/note_complete.ts";
import { noteMade } from "../meter/note_made.ts";
import { logFault, releaseCall, settleCall } from "../finish/settle.ts";
import type { TokenUsage } from "../../pricing/usage.ts";

/**
 * A response that is not streamed: forward, meter, settle, respond. It is read to its end and
 * charged exactly, also when the client has disconnected. Throws the error for the caller; then
 * nothing is charged, unless a bound or a fault of ours ended what the upstream had begun.
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
  let isReceived = false;
  let isLarge = false;
  try {
    const { complete, large } = await askTargets(
      services,
      call,
      () => receive(services, call, memory),
    );
    isReceived = true;
    if (complete) return await chargedResponse(services, call, complete);
    if (large.rest === null) return await passedResponse(services, call, large);
    const headers = largeHeaders(services, call, large);
    isLarge = true;
    const freeBody = call.bodies.keep(call.request);
    const freePlace = call.place.keep();
    memory.release();
    return largeResponse(services, call, {
      large,
      headers,
      onEnd() {
        end();
        freeBody();
        freePlace();
      },
    });
  } catch (error) {
    if (call.isEnding) throw error;
    return await endFailed(services, call, error, isChargedCut(call, error) || isReceived);
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
  const notice = await createBalanceNotice(services, call).catch((error) => {
    logFault(services, call, error);
    return { atLength: null, atEnd: null };
  });
  return await respondCharged(services, call, {
    usage,
    kept: complete.kept ?? null,
    write(entry) {
      const balance = entry.balanceAfter;
      return complete.write({ usage: usageBody(call, { usage, entry }), notice, balance });
    },
  });
}

/**
 * Charges a response that has arrived whole, then responds with what `write` makes of it. A fault
 * of ours in that is a 500 whose caller is told not to repeat it.
 */
async function respondCharged(
  services: InferenceDeps,
  call: AdmittedCall,
  { usage, kept = null, write, headers = {} }: {
    usage: TokenUsage;
    kept?: KeptIds | null;
    write(entry: Entry): string;
    headers?: HeaderList;
  },
): Promise<Response> {
  const { idempotency, ref } = call;
  const written = (entry: Entry): StoredResponse => {
    try {
      const own = { ...headers, ...chargeHeaders(entry), ...targetHeaders(call) };
      return { headers: own, body: write(entry) };
    } catch (error) {
      logFault(services, call, error);
      return errorAsResponse(call, chargedError(internalError(error), entry));
    }
  };
  let response: StoredResponse | null = null;
  const { entry } = await settleCall(services, call, {
    usage,
    ending: { kind: "completed" },
    kept,
    alongside(tx, entry) {
      response = written(entry);
      if (idempotency) storeResponse(services, tx, { mark: idempotency, ref, response });
    },
  });
  // A charge that has landed before its outcome was known is read, and writes nothing more.
  const { body, headers: own, status }: StoredResponse = response ?? written(entry);
  const isTooLarge = idempotency && !fitsIdempotencyStore(body);
  const more = {
    ...own,
    ...rateHeaders(call.rateLimits),
    ...(isTooLarge ? { "idempotency-stored": "false" } : {}),
  };
  return completionResponse(body, call.requestId, more, status);
}

/** A response that has arrived whole and is passed on as it is; charged by what it reports. */
async function passedResponse(
  services: InferenceDeps,
  call: AdmittedCall,
  { start: bytes, type, kind }: LargeBody,
): Promise<Response> {
  const { meter, format } = call;
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
  return await respondCharged(services, call, {
    usage: await meter.usage(),
    write: () => body,
    headers: {
      ...(type === undefined ? {} : { "content-type": type }),
      ...(format.isPassedOn ? {} : { "x-service-unparsed": "true" }),
    },
  });
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
  const { idempotency, telemetry, ref } = call;
  telemetry.countError(error);
  if (isOurFault(error)) stopOnFault(services, call, error);
  if (!isCharged) {
    await releaseCall(services, call, failedEnding(error));
    throw error;
  }
  const shown = error instanceof ApiError ? error : internalError(error);
  const { entry } = await settleCall(services, call, {
    usage: await knownUsage(services, call),
    ending: failedEnding(error),
    alongside(tx, entry) {
      const response = errorAsResponse(call, chargedError(shown, entry));
      if (idempotency) storeResponse(services, tx, { mark: idempotency, ref, response });
    },
  });
  throw chargedError(shown, entry);
}

/** An error whose caller has been charged, and is told not to repeat it. */
function chargedError(error: ApiError, entry: Entry): ApiError {
  return error.with({ ...chargeHeaders(entry), "x-should-retry": "false" });
}

function errorAsResponse({ format, requestId }: AdmittedCall, error: ApiError): StoredResponse {
  const { status, headers } = error;
  const body = format.errorBody ? format.errorBody(error, requestId) : error.body();
  return { status, headers, body: JSON.stringify(body) };
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
