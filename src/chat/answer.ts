import type { Bodies } from "../base/bodies.ts";
import { ApiError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { AccountRef } from "../ledger/account.ts";
import { amountOf, type Entry } from "../ledger/entry.ts";
import type { Holds, Rates } from "../ledger/hold.ts";
import type { Amount } from "../base/money.ts";
import type { Announce } from "../projects/announce.ts";
import type { Auth, Caller } from "../projects/auth.ts";
import type { Ending } from "./events.ts";
import type { FirstRequest } from "./first_request.ts";
import type { KeyGates, Place } from "./limits.ts";
import type { Meter } from "./meter.ts";
import { answerCost, outputTokensFor, type Terms } from "./pricing.ts";
import type { ChatQuote } from "./quote.ts";
import type { Replay, ReplayMark } from "./replay.ts";
import type { Running } from "./running.ts";
import type { ChatRequest } from "./schema.ts";
import type { Steps } from "./steps.ts";
import { upstreamTimeout } from "./upstream_error.ts";
import type { FindUpstream, Upstream } from "./upstreams.ts";
import { inputOf, type TokenUsage } from "./usage.ts";
import type { WaysOut } from "../paywall/way_out.ts";

/** What the chat room stands on. */
export interface ChatRooms {
  deps: Deps;
  auth: Auth;
  holds: Holds;
  running: Running;
  findUpstream: FindUpstream;
  announce: Announce;
  gates: KeyGates;
  /** The requests that wait for an answer under its idempotency key: how many, by the key. */
  waiters: Map<string, number>;
  /** Where a user goes to go on. */
  linkFor: WaysOut["linkFor"];
}

/** A chat request, read and known to be allowed, before any money is held for it. */
export interface Ask {
  /** Our own id: the hold's and, as `act_…`, the entry's. */
  id: string;
  /** How far it has come, for graphs and traces. */
  steps: Steps;
  /** On the response: the caller's own id, or ours. */
  requestId: string;
  request: Request;
  /** Where its body has its room. */
  bodies: Bodies;
  /** In milliseconds since 1970. */
  askedAt: number;
  caller: Caller;
  user: string;
  /** Null where a wallet would pay, and nobody allows that. */
  ref: AccountRef | null;
  chat: ChatRequest;
  terms: Terms;
  upstream: Upstream;
  firstRequest: FirstRequest;
  replay: ReplayMark | null;
  /** What was under its idempotency key when it came. */
  earlier: Replay | null;
}

/** An answer whose hold stands. */
export interface Answer extends Ask {
  ref: AccountRef;
  /** Its place among those of its key. */
  place: Place;
  /** How the rates stand that bound it. */
  rates: readonly Rates[];
  quote: ChatQuote;
  meter: Meter;
  /** Ends the call of the upstream; the reason is what the caller is told. */
  controller: AbortController;
}

/** What names an answer where its upstream does not. */
export function answerHead({ id, chat, askedAt }: Answer): JsonObject {
  const created = Math.floor(askedAt / 1000);
  return { id: id.replace("req_", "chatcmpl-"), created, model: chat.model };
}

/** Watches over the answer while `work` runs: renews its hold, and cuts it when that fails. */
export function watch({ running }: ChatRooms, answer: Answer): () => void {
  const stop = running.add({
    ref: answer.ref,
    id: answer.id,
    requestId: answer.requestId,
    model: answer.chat.model,
    async used() {
      const usage = await answer.meter.usageSoFar();
      return { input: inputOf(usage), output: usage.output, cost: costOf(answer, usage) };
    },
    cut: (reason) => answer.controller.abort(reason),
  });
  return () => {
    stop();
    answer.place.leave();
  };
}

/** Ends the call after the upstream's deadline, unless the returned function is called before. */
export function startDeadline({ deps }: ChatRooms, { controller }: Answer): () => void {
  const { upstreamTimeoutMs } = deps.config;
  return deps.clock.after(
    upstreamTimeoutMs,
    () => controller.abort(upstreamTimeout(`no answer within ${upstreamTimeoutMs} ms`)),
  );
}

/** What the answer costs with this usage. */
export function costOf({ terms, meter }: Answer, usage: TokenUsage): Amount {
  return answerCost(terms.price, usage, meter.producedOutput);
}

/** Whether it is worth counting: one look at lengths says no to nearly every frame. */
export function mayBeUsedUp({ meter, quote, chat }: Answer): boolean {
  return !meter.surelyWithin(quote.cap * chat.choices);
}

/** Whether our own count says that the answer has used up its hold. */
export async function isUsedUp({ meter, quote, terms }: Answer): Promise<boolean> {
  const input = inputOf(await meter.usage());
  const output = await meter.countOutput();
  const spendable = quote.amount;
  return output >= outputTokensFor(terms.price, { spendable, input, choices: 1 });
}

/** How an answer ends that a fault ends. */
export function failure(fault: unknown): Extract<Ending, { kind: "failed" }> {
  if (!(fault instanceof ApiError)) return { kind: "failed", errorCode: "internal_error" };
  // What a model's server refuses has often no code of its own.
  return { kind: "failed", errorCode: fault.code ?? fault.type };
}

/** The provider's `usage`, or our own count in its place, with what was charged for it. */
export function usageBody(
  answer: Answer,
  { usage, entry }: { usage: TokenUsage; entry: Entry },
): Record<string, unknown> {
  const input = inputOf(usage);
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
export function abortPolicy({ terms, upstream, chat }: Answer): "estimate" | "drain" {
  const hidden = terms.reasoning || chat.reasons;
  return terms.onAbort ?? upstream.onAbort ?? (hidden ? "drain" : "estimate");
}
