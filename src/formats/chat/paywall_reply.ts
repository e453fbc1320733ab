import { ApiError } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { corsHeaders, type HeaderList, jsonResponse } from "../../base/response.ts";
import type { RateLimitState } from "../../ledger/hold.ts";
import type { PublicRefusalReason } from "../../ledger/refusal.ts";
import { rateHeaders } from "../../inference/rate_limiter.ts";
import type { ChatRequest } from "./request.ts";

/** How a stream is sent: neither stored nor buffered on its way. */
export const streamHeaders: HeaderList = {
  ...corsHeaders,
  "content-type": "text/event-stream; charset=utf-8",
  "cache-control": "no-cache, no-transform",
  "x-accel-buffering": "no",
};

/** What stands in the way of an answer, as its caller is told. */
export interface Paywall {
  reason: PublicRefusalReason;
  message: string;
  url: string;
}

interface ReplyOptions {
  chat: ChatRequest;
  requestId: string;
  completionId: string;
  /** In milliseconds since 1970. */
  now: number;
  /** How the rates stand, as far as they are known. */
  rates: readonly RateLimitState[];
}

const noUsage = { prompt_tokens: 0, completion_tokens: 0, total_tokens: 0, cost: "0" };

/**
 * The paywall as the model's own answer: a normal completion, streamed when a stream was asked for,
 * that used nothing. Headers and `paywall` tell callers who want to branch.
 */
export function paywallReply(paywall: Paywall, options: ReplyOptions): Response {
  const { chat, requestId } = options;
  const { reason, message: content, url } = paywall;
  const told = {
    ...corsHeaders,
    "x-service-paywall": reason,
    "x-service-paywall-url": URL.parse(url)?.href ?? encodeURI(url),
    ...rateHeaders(options.rates),
  };
  const head = {
    id: options.completionId,
    created: Math.floor(options.now / 1000),
    model: chat.model,
    paywall: { reason, url },
  };
  if (!chat.stream) {
    const message = { role: "assistant", content, refusal: null };
    const choices = [{ index: 0, message, logprobs: null, finish_reason: "stop" }];
    const body = { ...head, object: "chat.completion", choices, usage: noUsage };
    return jsonResponse(200, body, requestId, told);
  }
  const chunk = (delta: JsonObject, finish: string | null) => ({
    ...head,
    object: "chat.completion.chunk",
    choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
    ...(chat.wantsUsage ? { usage: null } : {}),
  });
  const chunks: unknown[] = [
    chunk({ role: "assistant", content: "", refusal: null }, null),
    chunk({ content }, null),
    chunk({}, "stop"),
  ];
  if (chat.wantsUsage) {
    chunks.push({ ...head, object: "chat.completion.chunk", choices: [], usage: noUsage });
  }
  const body = chunks.map((value) => sseFrame(JSON.stringify(value))).join("") + sseDone;
  return new Response(body, { headers: { ...streamHeaders, "x-request-id": requestId, ...told } });
}

/** One server-sent event. JSON text has no line breaks; other data keeps its own. */
export function sseFrame(data: string): string {
  if (!/[\r\n]/.test(data)) return `data: ${data}\n\n`;
  return data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`).join("") + "\n";
}

/** How OpenAI's streams end. */
export const sseDone = "data: [DONE]\n\n";

/** A fault as the frame that ends a stream. */
export function errorFrame(error: unknown): string {
  const told = error instanceof ApiError
    ? error
    : new ApiError(500, { message: "The answer could not be completed.", code: "internal_error" });
  return sseFrame(JSON.stringify(told.body()));
}
