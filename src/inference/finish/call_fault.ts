import { errorFields } from "../../base/errors.ts";
import type { AdmittedCall } from "../call.ts";
import type { InferenceServices } from "../services.ts";

type Services = Pick<InferenceServices, "deps">;

/** Logs a fault of ours after an upstream has answered. */
export function logFault({ deps }: Services, call: AdmittedCall, error: unknown): void {
  const { id: chat, requestId } = call;
  deps.log("error", "call_fault", { requestId, chat, ...errorFields(error) });
}

/** Runs a step that must not prevent a charge: a fault of ours in it is logged. */
export function withoutFault(services: Services, call: AdmittedCall, step: () => void): void {
  try {
    step();
  } catch (error) {
    logFault(services, call, error);
  }
}
