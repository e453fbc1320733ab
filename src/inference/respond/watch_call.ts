import { inputTokensOf, outputTokensOf } from "../../base/token_classes.ts";
import type { AdmittedCall } from "../call.ts";
import { billOf } from "../meter/bill.ts";
import type { InferenceServices } from "../services.ts";

/**
 * Registers the call as running until the returned function is called: its hold is renewed, and it
 * is aborted when that fails.
 */
export function watchCall(
  services: Pick<InferenceServices, "running" | "prices">,
  call: AdmittedCall,
): () => void {
  const stop = services.running.add({
    ref: call.ref,
    id: call.id,
    requestId: call.requestId,
    model: call.input.model,
    async used() {
      const usage = await call.attempt.meter.usageSoFar();
      return {
        input: inputTokensOf(usage),
        output: outputTokensOf(usage),
        cost: billOf(services, call, usage).cost,
      };
    },
    cut: (reason) => call.attempt.controller.abort(reason),
  });
  return () => {
    stop();
    call.attempt.stopTimers();
    call.permit.release();
  };
}

/**
 * Keeps the request's place and the memory of its body beyond the handler, until the returned
 * function is called, for a response whose body is sent after it.
 */
export function stayOpen(
  { running }: Pick<InferenceServices, "running">,
  { bodies, request, place }: AdmittedCall,
): () => void {
  const removeStream = running.addStream();
  const freeBody = bodies.keep(request);
  const freePlace = place.keep();
  return () => {
    removeStream();
    freeBody();
    freePlace();
  };
}
