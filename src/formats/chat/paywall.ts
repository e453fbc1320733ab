import type { JsonObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { PaywallMessage, ResponseHead } from "../../inference/upstream_response.ts";
import { noUsage } from "../openai/usage.ts";
import { sseDone, sseFrame } from "../openai/sse.ts";

/**
 * The paywall as the assistant's message: a normal completion that used nothing, as a stream of
 * three chunks where the caller asked for one. `paywall` is for callers that branch on it. Where
 * JSON is required, the text is a refusal as well: clients show that instead of an error of their
 * parser.
 */
export function writeChatPaywall(
  { message: text, paywall }: PaywallMessage,
  { stream, wantsUsage, requiresJson }: ModelRequest,
  { id, created, model }: ResponseHead,
): string {
  const head = { id, created, model, paywall };
  // Some clients join both: a line break ends the link.
  const content = requiresJson ? `${text}\n` : text;
  if (!stream) {
    const message = { role: "assistant", content, refusal: requiresJson ? text : null };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: "stop" }];
    return JSON.stringify({ ...head, object: "chat.completion", choices, usage: noUsage });
  }
  const object = "chat.completion.chunk";
  const chunk = (delta: JsonObject, finish: string | null) => ({
    ...head,
    object,
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(wantsUsage ? { usage: null } : {}),
  });
  const chunks: unknown[] = [
    chunk({ role: "assistant", content: "", refusal: null }, null),
    chunk(requiresJson ? { content, refusal: text } : { content }, null),
    chunk({}, "stop"),
  ];
  if (wantsUsage) chunks.push({ ...head, object, choices: [], usage: noUsage });
  return chunks.map((value) => sseFrame(JSON.stringify(value))).join("") + sseDone;
}
