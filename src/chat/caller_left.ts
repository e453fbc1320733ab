import { ApiError } from "../base/errors.ts";
import { failure } from "./answer.ts";
import type { Ending } from "./events.ts";

const gone = { message: "The caller closed the connection." };
/** The reason of an abort when the caller has gone; nobody reads it. */
export const callerLeft = new ApiError(499, gone);
/** The same before anything was sent, and so before anything is due. */
export const callerLeftEarly = new ApiError(499, gone);

/** How an answer ended: by nothing, by its caller, or by a fault. */
export function endingOf(fault: unknown): Ending {
  if (!fault) return { kind: "completed" };
  const left = fault === callerLeft || fault === callerLeftEarly;
  return left ? { kind: "canceled" } : failure(fault);
}
