import { ApiError, internalError } from "../../base/errors.ts";
import type { AdmittedCall } from "../call.ts";
import { type Ending, toldAs } from "../finish/ending.ts";
import { finishCall, type FinishServices } from "../finish/finish_call.ts";
import { chargedError, errorAsResponse } from "./written_response.ts";

/**
 * Ends a call without a response, and throws the error for its caller. Where it is charged, as
 * after a cut by our own bounds, the caller is told not to repeat it, and a request under the same
 * idempotency key gets the same error without another charge.
 */
export async function failCall(
  services: FinishServices,
  call: AdmittedCall,
  ending: Ending,
): Promise<never> {
  const { error } = ending;
  const shown = error instanceof ApiError ? error : internalError(error);
  const charge = await finishCall(services, call, {
    ...ending,
    stored: ({ entry }) => errorAsResponse(call, chargedError(shown, entry)),
  });
  // Nobody reads the error of a call whose client has left.
  throw charge && toldAs(error).kind === "failed" ? chargedError(shown, charge.entry) : error;
}
