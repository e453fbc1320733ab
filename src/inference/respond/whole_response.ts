import { internalError } from "../../base/errors.ts";
import type { HeaderList } from "../../base/response.ts";
import type { MemoryShare } from "../../base/memory_budget.ts";
import { rateHeaders } from "../admit/rate_limiter.ts";
import { askTargets, startTimers } from "../ask/ask_targets.ts";
import { forward, type Forwarded } from "../ask/forward.ts";
import { readPassed } from "../ask/read_passed.ts";
import { type LargeBody, readWhole } from "../ask/read_whole.ts";
import type { AdmittedCall } from "../call.ts";
import { logFault } from "../finish/call_fault.ts";
import { arrived, type Charged, cutBy, type Ending } from "../finish/ending.ts";
import { finishCall } from "../finish/finish_call.ts";
import type { TextFormat } from "../format.ts";
import type { BalanceNotice } from "../notice.ts";
import type { CompleteResponse } from "../upstream_response.ts";
import { noteComplete } from "../meter/note_complete.ts";
import { notePassed } from "../meter/note_passed.ts";
import { fitsIdempotencyStore, type StoredResponse } from "../receive/idempotency.ts";
import type { RespondServices } from "./respond_services.ts";
import { createBalanceNotice, noNotice } from "./balance_notice.ts";
import { failCall } from "./fail_call.ts";
import { bodyHeaders, largeHeaders, largeResponse } from "./large_response.ts";
import { stayOpen, watchCall } from "./watch_call.ts";
import {
  chargedError,
  chargeHeaders,
  completionResponse,
  errorAsResponse,
  targetHeaders,
  usageBody,
} from "./written_response.ts";

/**
 * A response that is not streamed. It is read to its end and charged exactly, also when the client
 * has disconnected. Throws the error for the caller; then nothing is charged, unless a bound or a
 * fault of ours ended what the upstream had begun.
 */
export async function wholeResponse(
  services: RespondServices,
  call: AdmittedCall,
): Promise<Response> {
  const memory = services.responseMemory.share();
  const stopWatching = watchCall(services, call);
  let isPassing = false;
  const end = () => {
    stopWatching();
    memory.release();
  };
  try {
    const { complete, format, large } = await askTargets(
      services,
      call,
      () => receive(services, call, memory),
    );
    if (complete) {
      const noticing = noticeOrNone(services, call);
      const notice = noticing instanceof Promise ? await noticing : noticing;
      return await charged(services, call, completeAnswer(call, { complete, format, notice }));
    }
    if (large.rest === null) return await charged(services, call, passedAnswer(call, large));
    // A body that is passed on counts as output, also when its usage cannot be read.
    call.attempt.meter.producedOutput = true;
    const headers = largeHeaders(services, call, large);
    isPassing = true;
    const leave = stayOpen(services, call);
    memory.release();
    const onEnd = () => {
      leave();
      end();
    };
    return largeResponse(services, call, { large, headers, onEnd });
  } catch (error) {
    if (call.isEnding) throw error;
    return await failCall(services, call, cutBy(error, false));
  } finally {
    if (!isPassing) end();
  }
}

/** What a charged call gets. */
interface Answer extends Pick<Ending, "kept" | "cacheable"> {
  headers?: HeaderList;
  write(charged: Charged): string;
}

function completeAnswer(
  call: AdmittedCall,
  { complete, format, notice }: {
    complete: CompleteResponse;
    format: TextFormat;
    notice: BalanceNotice;
  },
): Answer {
  return {
    kept: complete.kept ?? null,
    cacheable: complete,
    write(charged) {
      const balance = charged.entry.balanceAfter;
      return complete.write({ usage: usageBody(format, call, charged), notice, balance });
    },
  };
}

/** The notices of a response; none where a fault of ours prevents them. */
function noticeOrNone(
  services: RespondServices,
  call: AdmittedCall,
): BalanceNotice | Promise<BalanceNotice> {
  const afterFault = (error: unknown) => {
    logFault(services, call, error);
    return noNotice;
  };
  try {
    const notice = createBalanceNotice(services, call);
    return notice instanceof Promise ? notice.catch(afterFault) : notice;
  } catch (error) {
    return afterFault(error);
  }
}

/** A response that has arrived whole and is passed on as it is; charged by what it reports. */
function passedAnswer(call: AdmittedCall, large: LargeBody): Answer {
  const body = notePassed(call, large);
  return {
    kept: null,
    cacheable: null,
    headers: bodyHeaders(large),
    write: () => body,
  };
}

/**
 * Charges a response that has arrived whole, then responds with it. A fault of ours in writing it
 * is a 500 whose caller is told not to repeat it.
 */
async function charged(
  services: RespondServices,
  call: AdmittedCall,
  { kept, cacheable, headers = {}, write }: Answer,
): Promise<Response> {
  let response: StoredResponse | null = null;
  const written = (charged: Charged): StoredResponse => {
    const { entry } = charged;
    try {
      const own = { ...headers, ...chargeHeaders(entry), ...targetHeaders(call) };
      return response = { headers: own, body: write(charged) };
    } catch (error) {
      logFault(services, call, error);
      return response = errorAsResponse(call, chargedError(internalError(error), entry));
    }
  };
  const ending = arrived({ kept, cacheable, stored: written });
  const charge = await finishCall(services, call, ending);
  if (!charge) throw new Error("a whole response is charged");
  const { body, headers: own, status } = response ?? written(charge);
  const isTooLarge = call.idempotency && !fitsIdempotencyStore(body);
  return completionResponse(body, call.requestId, {
    ...own,
    ...rateHeaders(call.rateLimits),
    ...(isTooLarge ? { "idempotency-stored": "false" } : {}),
  }, status);
}

/** The response of one attempt: a text that was parsed, or a body that passes on. */
type Received =
  | { complete: CompleteResponse; format: TextFormat; large?: never }
  | { complete: null; format?: never; large: LargeBody };

/** Reads the response of one attempt, and what it has used. */
async function receive(
  services: RespondServices,
  call: AdmittedCall,
  memory: MemoryShare,
): Promise<Received> {
  const { format } = call;
  if (format.kind === "text") return await receiveText(services, call, { format, memory });
  const bytesMax = services.deps.config.upstreamBodyBytesMax;
  const response = await forwardWhole(services, call);
  const large = await readPassed(call, format, { ...response, bytesMax, memory });
  return { complete: null, large };
}

async function receiveText(
  services: RespondServices,
  call: AdmittedCall,
  { format, memory }: { format: TextFormat; memory: MemoryShare },
): Promise<Received> {
  const { telemetry, cache, attempt: { meter } } = call;
  if (cache?.hit) {
    meter.isAnswered = true;
    noteComplete(meter, cache.hit.complete);
    return { complete: cache.hit.complete, format };
  }
  const response = await forwardWhole(services, call);
  const { complete, large } = await readWhole(services, call, { ...response, format, memory });
  if (!complete) return { complete, large };
  telemetry.begin("meter");
  noteComplete(meter, complete);
  return { complete, format };
}

function forwardWhole(services: RespondServices, call: AdmittedCall): Promise<Forwarded> {
  startTimers(services, call);
  call.telemetry.begin("forward", { upstream: call.attempt.target.upstream.name });
  return forward(call);
}
