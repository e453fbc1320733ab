import type { BodyBudget } from "../base/body_budget.ts";
import { ApiError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { AccountRef } from "../ledger/account.ts";
import { amountOf, type Entry } from "../ledger/entry.ts";
import type { Holds, RateLimitState } from "../ledger/hold.ts";
import type { Amount } from "../base/money.ts";
import type { EmitEvents } from "../projects/commit_with_events.ts";
import type { Auth, Caller } from "../projects/auth.ts";
import type { CallEnding } from "./events.ts";
import type { PreparedBody } from "./prepared_body.ts";
import type { Permit, RateLimiter } from "./rate_limiter.ts";
import type { UsageMeter } from "./usage_meter.ts";
import { affordableOutput, type ModelTerms, usageCost } from "../pricing/price.ts";
import type { CallQuote } from "./quote.ts";
import type { IdempotencyMark, PreviousCall } from "./idempotency.ts";
import type { RunningCalls } from "./running.ts";
import type { ChatRequest } from "../formats/chat/request.ts";
import type { CallTelemetry } from "./telemetry.ts";
import { upstreamTimeout } from "../upstreams/errors.ts";
import type { FindUpstream, Upstream } from "../upstreams/upstreams.ts";
import { inputTokensOf, type TokenUsage } from "../pricing/usage.ts";
import type { Offers } from "../paywall/offer.ts";

/** What the chat room stands on. */
export interface InferenceDeps {
  deps: Deps;
  auth: Auth;
  holds: Holds;
  running: RunningCalls;
  findUpstream: FindUpstream;
  emit: EmitEvents;
  rateLimiter: RateLimiter;
  /** The requests that wait for an answer under its idempotency key: how many, by the key. */
  waiters: Map<string, number>;
  /** Where a user goes to go on. */
  linkFor: Offers["linkFor"];
}

/** A chat request, read and known to be allowed, before any money is held for it. */
export interface InferenceCall {
  /** Our own id: the hold's and, as `act_…`, the entry's. */
  id: string;
  /** How far it has come, for graphs and traces. */
  telemetry: CallTelemetry;
  /** On the response: the caller's own id, or ours. */
  requestId: string;
  request: Request;
  /** Where its body has its room. */
  bodies: BodyBudget;
  /** In milliseconds since 1970. */
  receivedAt: number;
  caller: Caller;
  user: string;
  /** Null where a wallet would pay, and nobody allows that. */
  ref: AccountRef | null;
  chat: ChatRequest;
  terms: ModelTerms;
  upstream: Upstream;
  preparedBody: PreparedBody;
  idempotency: IdempotencyMark | null;
  /** What was under its idempotency key when it came. */
  previous: PreviousCall | null;
}

/** An answer whose hold stands. */
export interface AdmittedCall extends InferenceCall {
  ref: AccountRef;
  /** Its place among those of its key. */
  permit: Permit;
  /** How the rates stand that bound it. */
  rateLimits: readonly RateLimitState[];
  quote: CallQuote;
  meter: UsageMeter;
  /** Ends the call of the upstream; the reason is what the caller is told. */
  controller: AbortController;
}

/** What names an answer where its upstream does not. */
export function responseHead({ id, chat, receivedAt }: AdmittedCall): JsonObject {
  const created = Math.floor(receivedAt / 1000);
  return { id: id.replace("req_", "chatcmpl-"), created, model: chat.model };
}

/** Watches over the answer while `work` runs: renews its hold, and cuts it when that fails. */
export function watchCall({ running }: InferenceDeps, answer: AdmittedCall): () => void {
  const stop = running.add({
    ref: answer.ref,
    id: answer.id,
    requestId: answer.requestId,
    model: answer.chat.model,
    async used() {
      const usage = await answer.meter.usageSoFar();
      return { input: inputTokensOf(usage), output: usage.output, cost: callCost(answer, usage) };
    },
    cut: (reason) => answer.controller.abort(reason),
  });
  return () => {
    stop();
    answer.permit.release();
  };
}

/** Ends the call after the upstream's deadline, unless the returned function is called before. */
export function startDeadline({ deps }: InferenceDeps, { controller }: AdmittedCall): () => void {
  const { upstreamTimeoutMs } = deps.config;
  return deps.clock.after(
    upstreamTimeoutMs,
    () => controller.abort(upstreamTimeout(`no answer within ${upstreamTimeoutMs} ms`)),
  );
}

/** What the answer costs with this usage. */
export function callCost({ terms, meter }: AdmittedCall, usage: TokenUsage): Amount {
  return usageCost(terms.price, usage, meter.producedOutput);
}

/** Whether it is worth counting: one look at lengths says no to nearly every frame. */
export function mayExceedHold({ meter, quote, chat }: AdmittedCall): boolean {
  return !meter.surelyWithin(quote.cap * chat.choices);
}

/** Whether our own count says that the answer has used up its hold. */
export async function exceedsHold({ meter, quote, terms }: AdmittedCall): Promise<boolean> {
  const input = inputTokensOf(await meter.usage());
  const output = await meter.countOutput();
  const spendable = quote.amount;
  return output >= affordableOutput(terms.price, { spendable, input, choices: 1 });
}

/** How an answer ends that a fault ends. */
export function failedEnding(fault: unknown): Extract<CallEnding, { kind: "failed" }> {
  if (!(fault instanceof ApiError)) return { kind: "failed", errorCode: "internal_error" };
  // What a model's server refuses has often no code of its own.
  return { kind: "failed", errorCode: fault.code ?? fault.type };
}

/** The provider's `usage`, or our own count in its place, with what was charged for it. */
export function usageBody(
  answer: AdmittedCall,
  { usage, entry }: { usage: TokenUsage; entry: Entry },
): Record<string, unknown> {
  const input = inputTokensOf(usage);
  const { reported } = answer.meter;
  const counted = {
    prompt_tokens: input,
    completion_tokens: usage.output,
    total_tokens: input + usage.output,
  };
  const told = usage.source === "provider" && reported ? reported : { ...reported, ...counted };
  return { ...told, cost: amountOf(entry) };
}

/** What an abandoned stream costs: hidden reasoning cannot be counted, so it is drained. */
export function abortPolicy({ terms, upstream, chat }: AdmittedCall): "estimate" | "drain" {
  const hidden = terms.reasoning || chat.asksReasoning;
  return terms.onAbort ?? upstream.onAbort ?? (hidden ? "drain" : "estimate");
}
