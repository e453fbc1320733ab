import { internalError } from "../../base/errors.ts";
import { tokenCounts } from "../../base/token_classes.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import type { AdmittedCall, InferenceDeps } from "../call.ts";
import { callerDisconnected, endingOf, isChargedCut, isOurFault } from "./disconnect.ts";
import { removeIdempotencyMark } from "../receive/idempotency.ts";
import { logFault, releaseCall, settleCall } from "./settle.ts";

/**
 * Ends a call that an error has ended before its own charge. What an upstream has answered is
 * charged, as far as it is known, where a bound or a fault of ours or the client has cut it; else
 * nothing. Does nothing where the store has been asked to end it before. Throws as settling does.
 */
export async function endEarly(
  services: InferenceDeps,
  call: AdmittedCall,
  error: unknown,
): Promise<void> {
  if (isOurFault(error)) stopOnFault(services, call, error);
  if (call.isEnding) return;
  const ending = endingOf(error);
  if (!isChargedCut(call, error) && error !== callerDisconnected) {
    return await releaseCall(services, call, ending);
  }
  const usage = await knownUsage(services, call);
  const { idempotency } = call;
  await settleCall(services, call, {
    usage,
    ending,
    alongside: (tx) => void (idempotency && removeIdempotencyMark(tx, idempotency)),
  });
}

/** Logs a fault of ours that ends a call, and stops its upstream: nobody reads its body further. */
export function stopOnFault(services: InferenceDeps, call: AdmittedCall, fault: unknown): void {
  logFault(services, call, fault);
  call.controller.abort(internalError(fault));
}

/** The usage of a response; where a fault of ours prevents counting it, all that was held. */
export async function knownUsage(
  services: InferenceDeps,
  call: AdmittedCall,
): Promise<TokenUsage> {
  try {
    return await call.meter.usage();
  } catch (error) {
    logFault(services, call, error);
    const { prompt, target: { input, quote } } = call;
    const counts = { uncachedInput: prompt.bound, output: quote.cap * input.choices };
    return { ...tokenCounts(counts), source: "estimated" };
  }
}
