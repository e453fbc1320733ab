import { ApiError } from "../../base/errors.ts";
import { corsHeaders, type HeaderList, headerValue, textResponse } from "../../base/response.ts";
import { absoluteAmount, type Entry } from "../../ledger/entry.ts";
import type { JsonObject } from "../../base/json.ts";
import type { AdmittedCall } from "../call.ts";
import type { TextFormat } from "../format.ts";
import type { Charged } from "../finish/ending.ts";
import type { StoredResponse } from "../receive/idempotency.ts";

/**
 * Headers that tell who answered, after how many attempts, which tools were removed, and what
 * bounds the output below what was asked for.
 */
export function targetHeaders(call: AdmittedCall): HeaderList {
  const { format, attempt: { target: { quote: { cap, limitedBy } } } } = call;
  if (limitedBy === null || format.kind !== "text") return routeHeaders(call);
  return { ...routeHeaders(call), "x-service-output-limit": `${cap}; by=${limitedBy}` };
}

function routeHeaders({ attempt, failed, isRouted, cache }: AdmittedCall): HeaderList {
  const { removedTools, upstream } = attempt.target;
  if (!isRouted && !cache && removedTools.length === 0) return {};
  const headers: Record<string, string> = {};
  if (removedTools.length > 0) {
    headers["x-service-removed-tools"] = headerValue(removedTools.join(", "));
  }
  if (cache) headers["x-service-cache"] = cache.hit ? "hit" : "miss";
  if (isRouted) {
    headers["x-service-upstream"] = upstream.name;
    headers["x-service-attempts"] = String(failed.length + 1);
  }
  return headers;
}

/** The error with these headers. */
export function withTargetHeaders(error: unknown, call: AdmittedCall): unknown {
  return error instanceof ApiError && call.isRouted ? error.with(routeHeaders(call)) : error;
}

/** Headers of a response that was charged before it is sent. */
export function chargeHeaders(entry: Entry): HeaderList {
  return {
    "x-service-activity-id": entry.id,
    "x-service-cost": absoluteAmount(entry),
    "x-service-balance": entry.balanceAfter,
  };
}

/** Returns `usage` for the caller, with the cost that was charged. */
export function usageBody(
  format: TextFormat,
  { attempt: { meter } }: AdmittedCall,
  { usage, entry }: Charged,
): JsonObject {
  return format.writeUsage(usage, { reported: meter.reported, cost: absoluteAmount(entry) });
}

/** An error whose caller has been charged, and is told not to repeat it. */
export function chargedError(error: ApiError, entry: Entry): ApiError {
  return error.with({ ...chargeHeaders(entry), "x-should-retry": "false" });
}

/** An error as it is stored under an idempotency key. */
export function errorAsResponse(
  { format, requestId }: AdmittedCall,
  error: ApiError,
): StoredResponse {
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
