import { ApiError } from "../../base/errors.ts";
import { abortPolicy, type AdmittedCall, failedEnding } from "../call.ts";
import { isDeadline, isOurBound } from "../../upstreams/errors.ts";
import type { CallEnding } from "./events.ts";

const disconnected = { message: "The client closed the connection." };
/** The reason of an abort after the client disconnected. No client reads it. */
export const callerDisconnected = new ApiError(499, disconnected);
/** The same before anything was sent upstream, so that nothing is due. */
export const callerDisconnectedEarly = new ApiError(499, disconnected);

/** Aborts the upstream of a disconnected client, unless the abort policy drains it. */
export function abortUpstream(call: AdmittedCall): void {
  if (abortPolicy(call) === "drain") return;
  call.controller.abort(call.meter.promptSent ? callerDisconnected : callerDisconnectedEarly);
}

/** Returns the ending of a call: completed without an error, canceled by its client, or failed. */
export function endingOf(error: unknown): CallEnding {
  if (!error) return { kind: "completed" };
  const left = error === callerDisconnected || error === callerDisconnectedEarly;
  return left ? { kind: "canceled" } : failedEnding(error);
}

/** Whether an error is a fault of ours, and no answer to a request. */
export function isOurFault(error: unknown): boolean {
  return !(error instanceof ApiError);
}

/**
 * Whether our own bound or deadline, or a fault of ours, has cut a response that its upstream
 * charges for; the meter then notes what was cut. Text that has passed is counted. Before any, an
 * aborted stream has cost its prompt. Where the upstream would not stop, or we could not read the
 * text, the output that was held is charged.
 */
export function isChargedCut(call: AdmittedCall, error: unknown): boolean {
  const { meter, input } = call;
  const isFault = isOurFault(error);
  if (isFault ? !meter.isAnswered : !isOurBound(error) || !meter.bodyBegun) return false;
  const isAborted = input.stream && abortPolicy(call) === "estimate";
  const isKnown = (isFault || isDeadline(error)) && (meter.producedOutput || isAborted);
  if (!isKnown) meter.noteUnreadOutput();
  return true;
}
