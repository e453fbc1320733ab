import type { ModelRequest } from "../../inference/model_request.ts";
import type { PaywallMessage, ResponseHead } from "../../inference/upstream_response.ts";
import { eventFrame } from "./errors.ts";
import { noMessageUsage } from "./usage.ts";

/**
 * The paywall as the assistant's message: a normal message that used nothing, as the events of a
 * stream where the caller asked for one. `paywall` is for callers that branch on it. Where JSON or
 * a tool call is required, it is a refusal as well, which says the text in `stop_details`.
 */
export function writeMessagesPaywall(
  { message, paywall }: PaywallMessage,
  { stream, requiresJson }: Pick<ModelRequest, "stream" | "requiresJson">,
  { id, model }: ResponseHead,
): string {
  // Some clients join the text and its explanation: a line break ends the link.
  const text = requiresJson ? `${message}\n` : message;
  const head = { id, type: "message", role: "assistant", model };
  const end = {
    stop_reason: requiresJson ? "refusal" : "end_turn",
    stop_sequence: null,
    ...(requiresJson
      ? { stop_details: { type: "refusal", category: null, explanation: text } }
      : {}),
  };
  if (!stream) {
    const content = [{ type: "text", text }];
    return JSON.stringify({ ...head, content, ...end, usage: noMessageUsage, paywall });
  }
  const started = { content: [], stop_reason: null, stop_sequence: null, usage: noMessageUsage };
  return [
    { type: "message_start", message: { ...head, ...started, paywall } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "ping" },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: end, usage: noMessageUsage },
    { type: "message_stop" },
  ].map((event) => eventFrame(event.type, JSON.stringify(event))).join("");
}
