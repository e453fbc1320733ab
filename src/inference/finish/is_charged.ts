import { abortPolicy } from "../ask/abort_policy.ts";
import type { AdmittedCall } from "../call.ts";
import { endedBy, type Ending } from "./ending.ts";

/**
 * Whether a call that has ended so is charged:
 *
 * - whole, or its client has left after the prompt was sent: always;
 * - cut by a bound or a deadline of ours: once the response has begun;
 * - ended by a fault of ours: once the upstream has answered;
 * - ended by the upstream, or before the prompt was sent: for output that its caller gets.
 */
export function isCharged(call: AdmittedCall, { error, isDelivered }: Ending): boolean {
  const { meter } = call.attempt;
  switch (endedBy(error)) {
    case "nobody":
    case "caller":
      return true;
    case "our_bound":
    case "our_deadline":
      return meter.bodyBegun;
    case "our_fault":
      return meter.isAnswered;
    case "upstream":
    case "caller_early":
      return isDelivered && meter.producedOutput;
  }
}

/**
 * Notes what we have cut of a response that its upstream charges for. Text that has passed is
 * counted. Before any, an aborted stream has cost its prompt. Where the upstream would not stop, or
 * we could not read the text, the output that was held is charged, and every image that was asked
 * for.
 */
export function noteUnread(call: AdmittedCall, { error }: Ending): void {
  const by = endedBy(error);
  if (by !== "our_bound" && by !== "our_deadline" && by !== "our_fault") return;
  const { attempt: { meter }, input } = call;
  const isAborted = input.stream && abortPolicy(call) === "estimate";
  const isKnown = by !== "our_bound" && (meter.producedOutput || isAborted);
  if (isKnown) return;
  meter.noteUnreadOutput();
  const { images } = meter.units;
  if (images) meter.units = { ...meter.units, images: { ...images, count: Infinity } };
}
