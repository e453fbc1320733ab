import { readRetryAfter } from "../../base/retry_after.ts";
import { isReroutable, UpstreamError } from "../../upstreams/errors.ts";
import type { AdmittedCall } from "../call.ts";
import type { InferenceServices } from "../services.ts";

/**
 * Tells the target's breaker how the call's attempt has ended: by an error, also after its response
 * has begun, or with null, whole. Only the first ending of an attempt counts.
 */
export function noteOutcome(
  { targetHealth, deps: { clock, metrics } }: Pick<InferenceServices, "targetHealth" | "deps">,
  { attempt }: AdmittedCall,
  error: unknown,
): void {
  if (attempt.isOver) return;
  attempt.isOver = true;
  const { target: { target, upstream } } = attempt;
  if (error === null) return targetHealth.succeeded(target);
  if (error instanceof UpstreamError) metrics.target(upstream.name).attempts[error.kind].add();
  if (!isReroutable(error)) return targetHealth.ended(target);
  targetHealth.failed(target, readRetryAfter(error.retryAfter ?? "", clock.now()));
}
