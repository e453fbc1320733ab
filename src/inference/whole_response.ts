import { upstreamBodyBytesMax } from "../base/limits.ts";
import { corsHeaders, type HeaderList, textResponse } from "../base/response.ts";
import { absoluteAmount, type Entry } from "../ledger/entry.ts";
import type { TokenUsage } from "../pricing/usage.ts";
import { readUpstreamBody } from "../upstreams/client.ts";
import { type BalanceNotice, createBalanceNotice } from "./balance_notice.ts";
import {
  type AdmittedCall,
  failedEnding,
  type InferenceDeps,
  responseHead,
  startDeadline,
  usageBody,
  watchCall,
} from "./call.ts";
import type { CompleteResponse } from "./format.ts";
import { forward } from "./forward.ts";
import { fitsIdempotencyStore, storeResponse } from "./idempotency.ts";
import { rateHeaders } from "./rate_limiter.ts";
import { releaseCall, settleCall } from "./settle.ts";

/**
 * A response that is not streamed: forward, meter, settle, respond. It is read to its end and
 * charged exactly, also when the client has disconnected. Throws the error for the caller; then
 * nothing is charged.
 */
export async function wholeResponse(
  services: InferenceDeps,
  call: AdmittedCall,
): Promise<Response> {
  const stopWatching = watchCall(services, call);
  try {
    const { complete, usage, notice } = await receive(services, call).catch(async (error) => {
      call.telemetry.countError(error);
      await releaseCall(services, call, failedEnding(error));
      throw error;
    });
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
  const { format, input, meter, telemetry, upstream: { apiKey }, controller: { signal } } = call;
  telemetry.begin("forward");
  const stopDeadline = startDeadline(services, call);
  try {
    const response = await forward(call);
    const bytes = await readUpstreamBody(response.body, upstreamBodyBytesMax, signal);
    telemetry.begin("meter");
    const complete = format.readResponse(bytes, {
      request: input,
      head: responseHead(call),
      apiKey,
    });
    for (const text of complete.texts) meter.addText(text);
    meter.addServed(complete.served);
    meter.addUsage(complete.usage);
    const usage = await meter.usage();
    return { complete, usage, notice: await createBalanceNotice(services, call) };
  } finally {
    stopDeadline();
  }
}
