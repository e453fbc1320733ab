import type { InferenceCall } from "./call.ts";
import type { ResponseHead } from "./upstream_response.ts";

/** Identifies a response where its upstream does not. */
export function responseHead(
  { id, format, input, receivedAt }: Pick<InferenceCall, "id" | "format" | "input" | "receivedAt">,
): ResponseHead {
  const created = Math.floor(receivedAt / 1000);
  return { id: id.replace("req_", format.idPrefix), created, model: input.model };
}
