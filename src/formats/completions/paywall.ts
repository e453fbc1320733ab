import type { JsonObject } from "../../base/json.ts";
import type { ModelRequest } from "../../inference/model_request.ts";
import type { PaywallMessage, ResponseHead } from "../../inference/upstream_response.ts";
import { sseDone, sseFrame } from "../openai/sse.ts";
import { noUsage } from "../openai/usage.ts";

/** The paywall as a completion's text, that used nothing; `paywall` is for callers that branch. */
export function writeCompletionPaywall(
  { message, paywall }: PaywallMessage,
  { stream, wantsUsage }: ModelRequest,
  { id, created, model }: ResponseHead,
): string {
  const head = { id, object: "text_completion", created, model, paywall };
  const choice = (text: string, finish: string | null): JsonObject => ({
    text,
    index: 0,
    logprobs: null,
    finish_reason: finish,
  });
  if (!stream) {
    return JSON.stringify({ ...head, choices: [choice(message, "stop")], usage: noUsage });
  }
  const usage = wantsUsage ? { usage: null } : {};
  const chunks: unknown[] = [
    { ...head, choices: [choice(message, null)], ...usage },
    { ...head, choices: [choice("", "stop")], ...usage },
  ];
  if (wantsUsage) chunks.push({ ...head, choices: [], usage: noUsage });
  return chunks.map((chunk) => sseFrame(JSON.stringify(chunk))).join("") + sseDone;
}
