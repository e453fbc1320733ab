import { ApiError } from "../../base/errors.ts";
import type { Entry } from "../../ledger/entry.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import { isDeadline, isOurBound, isOurFault, UpstreamError } from "../../upstreams/errors.ts";
import { callerDisconnected, callerDisconnectedEarly } from "../caller_left.ts";
import type { CompleteResponse, KeptIds } from "../upstream_response.ts";
import type { StoredResponse } from "../receive/idempotency.ts";
import type { CallEnding } from "./events.ts";

/** How an admitted call has ended. `finishCall` decides by it whether the call is charged. */
export interface Ending {
  /** The error that has ended the call; null where its response has arrived whole. */
  error: unknown;
  /** Whether the caller has got, or gets, the output that has arrived. */
  isDelivered: boolean;
  /** Whether the upstream has sent its last word on usage. */
  isWhole: boolean;
  /** Ids of the response that its user may refer to. */
  kept: KeptIds | null;
  /** The response that the project's cache may keep. */
  cacheable: CompleteResponse | null;
  /**
   * The response to store under the call's idempotency key. Null frees the key for another request.
   */
  stored: ((charged: Charged) => StoredResponse) | null;
}

/** The charge of a call. */
export interface Charged {
  entry: Entry;
  usage: TokenUsage;
}

const nothingKept = { kept: null, cacheable: null, stored: null };

/** The ending of a call whose response has arrived whole. */
export function arrived(
  { kept = null, cacheable = null, stored = null }: Partial<Ending> = {},
): Ending {
  return { error: null, isDelivered: true, isWhole: true, kept, cacheable, stored };
}

/**
 * The ending of a call before the end of its response. `isDelivered`: its caller gets a part of it.
 */
export function cutBy(error: unknown, isDelivered: boolean): Ending {
  return { ...nothingKept, error, isDelivered, isWhole: false };
}

/** Who or what has ended a call. */
type EndedBy =
  | "nobody"
  | "upstream"
  | "caller"
  | "caller_early"
  | "our_bound"
  | "our_deadline"
  | "our_fault";

/** Returns who has ended a call, by the error that ended it. */
export function endedBy(error: unknown): EndedBy {
  if (error === null) return "nobody";
  if (error === callerDisconnected) return "caller";
  if (error === callerDisconnectedEarly) return "caller_early";
  if (isOurFault(error)) return "our_fault";
  if (isDeadline(error)) return "our_deadline";
  return isOurBound(error) ? "our_bound" : "upstream";
}

/** Returns the ending as events and the log of requests name it. */
export function toldAs(error: unknown): CallEnding {
  switch (endedBy(error)) {
    case "nobody":
      return { kind: "completed" };
    case "caller":
    case "caller_early":
      return { kind: "canceled" };
    default:
      return failedEnding(error);
  }
}

/** Returns the ending of a call that has failed with this error. */
export function failedEnding(error: unknown): Extract<CallEnding, { kind: "failed" }> {
  if (!(error instanceof ApiError)) {
    return { kind: "failed", errorCode: "internal_error", status: 500 };
  }
  const { status } = error;
  // Our own limits refuse with the same code.
  if (error instanceof UpstreamError && error.kind === "rate_limited") {
    return { kind: "failed", errorCode: "upstream_rate_limited", status };
  }
  // An upstream's refusal often has no code of its own.
  return { kind: "failed", errorCode: error.code ?? error.type, status };
}
