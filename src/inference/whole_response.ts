import { ApiError } from "../base/errors.ts";
import { corsHeaders, type HeaderList, textResponse } from "../base/response.ts";
import { absoluteAmount, type Entry } from "../ledger/entry.ts";
import type { TokenUsage } from "../pricing/usage.ts";
import { isOurBound } from "../upstreams/errors.ts";
import { type BalanceNotice, createBalanceNotice } from "./balance_notice.ts";
import {
  type AdmittedCall,
  failedEnding,
  type InferenceDeps,
  startDeadline,
  usageBody,
  watchCall,
} from "./call.ts";
import type { CompleteResponse } from "./format.ts";
import { forward } from "./forward.ts";
import { fitsIdempotencyStore, removeIdempotencyMark, storeResponse } from "./idempotency.ts";
import { rateHeaders } from "./rate_limiter.ts";
import { readWhole } from "./read_whole.ts";
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
  const stopWatching = watchCall(services, call);
  try {
    const { complete, usage, notice } = await receive(services, call).catch((error) =>
      endFailed(services, call, error)
    );
    let body = "";
    let headers: HeaderList = {};
    await settleCall(services, call, {
      usage,
      ending: { kind: "completed" },
      alongside(tx, entry) {
        const balance = entry.balanceAfter;
        headers = chargeHeaders(entry);
        body = complete.write({ usage: usageBody(call, { usage, entry }), notice, balance });
        const { idempotency, ref } = call;
        if (idempotency) storeResponse(tx, idempotency, { ref, response: { headers, body } });
      },
    });
    const isTooLarge = call.idempotency && !fitsIdempotencyStore(body);
    const stored = isTooLarge ? { "idempotency-stored": "false" } : {};
    const more = { ...headers, ...rateHeaders(call.rateLimits), ...stored };
    return completionResponse(body, call.requestId, more);
  } finally {
    stopWatching();
  }
}

/**
 * Ends a call without a response, and throws the error for its caller. What our own bounds have cut
 * is charged by what is known of it; the caller is told not to repeat it.
 */
async function endFailed(
  services: InferenceDeps,
  call: AdmittedCall,
  error: unknown,
): Promise<never> {
  const { meter, idempotency, telemetry } = call;
  telemetry.countError(error);
  if (!isOurBound(error) || !meter.bodyBegun) {
    await releaseCall(services, call, failedEnding(error));
    throw error;
  }
  meter.assumeHeldOutput();
  const { entry } = await settleCall(services, call, {
    usage: await meter.usage(),
    ending: failedEnding(error),
    alongside: (tx) => void (idempotency && removeIdempotencyMark(tx, idempotency)),
  });
  const headers = { ...chargeHeaders(entry), "x-should-retry": "false" };
  throw error instanceof ApiError ? error.with(headers) : error;
}

/** A response body as it is sent, the first time or replayed. */
export function completionResponse(body: string, requestId: string, more: HeaderList): Response {
  const headers = {
    ...corsHeaders,
    "content-type": "application/json",
    "x-request-id": requestId,
    ...more,
  };
  return textResponse(200, body, headers);
}

function chargeHeaders(entry: Entry): HeaderList {
  return {
    "x-service-activity-id": entry.id,
    "x-service-cost": absoluteAmount(entry),
    "x-service-balance": entry.balanceAfter,
  };
}

async function receive(
  services: InferenceDeps,
  call: AdmittedCall,
): Promise<{ complete: CompleteResponse; usage: TokenUsage; notice: BalanceNotice }> {
  const { meter, telemetry } = call;
  telemetry.begin("forward");
  const stopDeadline = startDeadline(services, call);
  try {
    const response = await forward(call);
    const complete = await readWhole(services, call, response);
    telemetry.begin("meter");
    for (const text of complete.texts) meter.addText(text);
    if (complete.hasImage) meter.producedImage = true;
    meter.addServed(complete.served);
    for (const usage of complete.usages) meter.addUsage(usage);
    const usage = await meter.usage();
    return { complete, usage, notice: await createBalanceNotice(services, call) };
  } finally {
    stopDeadline();
  }
}
