import { ApiError } from "../base/errors.ts";
import { abortPolicy, type AdmittedCall, failedEnding } from "./call.ts";
import type { CallEnding } from "./events.ts";

const gone = { message: "The caller closed the connection." };
/** The reason of an abort when the caller has gone; nobody reads it. */
export const callerDisconnected = new ApiError(499, gone);
/** The same before the model's server had anything of it, and so before anything is due. */
export const callerDisconnectedEarly = new ApiError(499, gone);

/** Lets the upstream of a caller go who has left, unless it is read to its end to be exact. */
export function abortUpstream(answer: AdmittedCall): void {
  if (abortPolicy(answer) === "drain") return;
  answer.controller.abort(answer.meter.promptSent ? callerDisconnected : callerDisconnectedEarly);
}

/** How an answer ended: by nothing, by its caller, or by a fault. */
export function endingOf(fault: unknown): CallEnding {
  if (!fault) return { kind: "completed" };
  const left = fault === callerDisconnected || fault === callerDisconnectedEarly;
  return left ? { kind: "canceled" } : failedEnding(fault);
}
