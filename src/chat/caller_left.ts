import { ApiError } from "../base/errors.ts";
import { abortPolicy, type Answer, failure } from "./answer.ts";
import type { Ending } from "./events.ts";

const gone = { message: "The caller closed the connection." };
/** The reason of an abort when the caller has gone; nobody reads it. */
export const callerLeft = new ApiError(499, gone);
/** The same before the model's server had anything of it, and so before anything is due. */
export const callerLeftEarly = new ApiError(499, gone);

/** Lets the upstream of a caller go who has left, unless it is read to its end to be exact. */
export function letGo(answer: Answer): void {
  if (abortPolicy(answer) === "drain") return;
  answer.controller.abort(answer.meter.promptSent ? callerLeft : callerLeftEarly);
}

/** How an answer ended: by nothing, by its caller, or by a fault. */
export function endingOf(fault: unknown): Ending {
  if (!fault) return { kind: "completed" };
  const left = fault === callerLeft || fault === callerLeftEarly;
  return left ? { kind: "canceled" } : failure(fault);
}
