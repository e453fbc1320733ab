import { callerDisconnected, callerDisconnectedEarly } from "../caller_left.ts";
import type { AdmittedCall } from "../call.ts";

/**
 * What happens to a stream whose client disconnects: `drain` reads it to its end, because hidden
 * reasoning and files at addresses cannot be counted; `estimate` aborts it and charges what was
 * produced.
 */
export function abortPolicy({ attempt: { target } }: AdmittedCall): "estimate" | "drain" {
  const { terms, upstream, input, reasoning, media } = target;
  const hasUnknownMedia = (media.unknown ?? 0) > 0;
  const hides = input.asksReasoning || reasoning.isPossible() || hasUnknownMedia;
  return terms.onAbort ?? upstream.onAbort ?? (hides ? "drain" : "estimate");
}

/** Aborts the upstream of a disconnected client, unless the abort policy drains it. */
export function abortUpstream(call: AdmittedCall): void {
  if (abortPolicy(call) === "drain") return;
  const { controller, meter } = call.attempt;
  controller.abort(meter.promptSent ? callerDisconnected : callerDisconnectedEarly);
}
