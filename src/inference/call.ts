import type { BodyBudget } from "../base/body_budget.ts";
import { ApiError } from "../base/errors.ts";
import { type HeaderList, headerValue } from "../base/response.ts";
import type { MemoryBudget } from "../base/memory_budget.ts";
import type { JsonObject } from "../base/json.ts";
import type { Place, PlaceLimiter } from "../base/place_limiter.ts";
import { type Amount, fromDecimal, toAmount, zero } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import type { AccountRef } from "../ledger/account.ts";
import { absoluteAmount, type Entry } from "../ledger/entry.ts";
import type { Holds, RateLimitState } from "../ledger/hold.ts";
import type { Offers } from "../paywall/offer.ts";
import {
  affordableOutput,
  costOfUse,
  type Price,
  pricesOnlyUnits,
  statedForCost,
  type Used,
} from "../pricing/price.ts";
import { usedUnits } from "../pricing/units.ts";
import type { Prices } from "../pricing/terms.ts";
import { inputTokensOf, outputTokensOf } from "../base/token_classes.ts";
import type { TokenUsage } from "../pricing/usage.ts";
import type { Auth, Caller } from "../projects/auth.ts";
import type { Conversion } from "../paywall/conversion.ts";
import type { RequestLog } from "../requests/request_log.ts";
import { UpstreamError } from "../upstreams/errors.ts";
import type { ReasoningModels } from "../upstreams/reasoning.ts";
import type { KeptTexts } from "../store/kept_texts.ts";
import type { TargetHealth } from "../upstreams/target_health.ts";
import type { FindTargets, FindUpstreamNamed } from "../upstreams/upstreams.ts";
import type { CallAttempt, CallTarget, FailedAttempt, PaidTarget } from "./attempt.ts";
import type { AnsweredConversations } from "./kept/conversations.ts";
import type { CallEnding } from "./finish/events.ts";
import type { Format, ModelRequest, ResponseHead } from "./format.ts";
import type { IdempotencyMark } from "./receive/idempotency.ts";
import type { KeptQuota } from "./kept/kept_quota.ts";
import type { HistorySize } from "./kept/kept_turns.ts";
import type { CountingBudget, CountingQueue, UnpaidCounting } from "./admit/prompt_counting.ts";
import type { PromptSize } from "./admit/quote.ts";
import type { Permit, RateLimiter } from "./admit/rate_limiter.ts";
import type { RefusalReports } from "./admit/refusal_reports.ts";
import type { RefusedModels } from "../summaries/refused_models.ts";
import type { CallCache } from "./receive/call_cache.ts";
import type { RunningCalls } from "./running.ts";
import type { CallTelemetry } from "./telemetry.ts";

/** What the pipeline depends on. */
export interface InferenceDeps {
  deps: Deps;
  auth: Auth;
  holds: Holds;
  running: RunningCalls;
  findTargets: FindTargets;
  findUpstreamNamed: FindUpstreamNamed;
  targetHealth: TargetHealth;
  conversations: AnsweredConversations;
  prices: Prices;
  reasoningModels: ReasoningModels;
  refusalReports: RefusalReports;
  refusedModels: RefusedModels;
  requestLog: RequestLog;
  conversion: Pick<Conversion, "saw">;
  rateLimiter: RateLimiter;
  places: PlaceLimiter;
  countOneByOne: CountingQueue;
  /** The memory for responses. */
  responseMemory: MemoryBudget;
  countingBudget: CountingBudget;
  unpaidCounting: UnpaidCounting;
  keptQuota: KeptQuota;
  texts: KeptTexts;
  /** Requests that wait for the response under their idempotency key: how many, by the key. */
  waiters: Map<string, number>;
  /** Returns the link that a refused user gets, and its events. */
  linkFor: Offers["linkFor"];
}

/** A request for a model's response, read and validated, before any money is held for it. */
export interface InferenceCall {
  /** Our own id: the hold's and, as `act_…`, the entry's. */
  id: string;
  telemetry: CallTelemetry;
  /** On the response: the caller's own id, or ours. */
  requestId: string;
  request: Request;
  /** The budget that the request's body is counted in. */
  bodies: BodyBudget;
  /** The request's place among those that this process handles. */
  place: Place;
  /** In milliseconds since 1970. */
  receivedAt: number;
  caller: Caller;
  user: string;
  /** The account that pays; null where a wallet would, and nobody has authorized it. */
  ref: AccountRef | null;
  format: Format;
  /** The request as its caller sent it, with what it refers to. */
  input: ModelRequest;
  /** Where it can be sent, in the order in which they are asked; at least one. */
  targets: readonly CallTarget[];
  /** Whether a route of the project leads to them. */
  isRouted: boolean;
  /** What the project's cache does for it; null where it has none, or not for such a request. */
  cache: CallCache | null;
  /** The user's conversation, where its route keeps it with one target; else null. */
  conversation: string | null;
  /** The previous response that the request continues; null where it continues none. */
  previousResponse: string | null;
  /** That conversation, where we keep it and it is a part of the input; else null. */
  history: HistorySize | null;
  /** The most tokens that the prompt has besides the body: what it refers to by id. */
  hiddenTokens: number;
  idempotency: IdempotencyMark | null;
}

/** A call as far as its request alone decides it. */
export type ReadCall = Pick<
  InferenceCall,
  | "id"
  | "telemetry"
  | "requestId"
  | "request"
  | "bodies"
  | "place"
  | "receivedAt"
  | "caller"
  | "user"
  | "format"
  | "input"
  | "idempotency"
>;

/** A call that can be refused: its account is known, or that there is none. */
export type RefusableCall = ReadCall & Pick<InferenceCall, "ref">;

/** A call whose hold is written. */
export interface AdmittedCall extends InferenceCall, CallAttempt {
  ref: AccountRef;
  permit: Permit;
  /** The state of the rate limits that apply to it. */
  rateLimits: readonly RateLimitState[];
  /** Those that the hold covers. */
  targets: readonly PaidTarget[];
  /** What is held, whichever of them answers. */
  held: Amount;
  /** The prompt's size, as it was bounded for the hold. */
  prompt: PromptSize;
  /** Attempts before the current one, which have failed. */
  failed: FailedAttempt[];
  /** Those that have not been asked. */
  untried: PaidTarget[];
  /** When the last attempt has to be over, by the clock's `elapsed`. */
  until: number;
  /** A part of a response has been sent: no other target may be asked. */
  hasBegun: boolean;
  /** The store has been asked to charge or to release it, which happens once. */
  isEnding: boolean;
}

/** Identifies a response where its upstream does not. */
export function responseHead(
  { id, format, input, receivedAt }: Pick<InferenceCall, "id" | "format" | "input" | "receivedAt">,
): ResponseHead {
  const created = Math.floor(receivedAt / 1000);
  return { id: id.replace("req_", format.idPrefix), created, model: input.model };
}

/** Headers that tell who answered, after how many attempts, and which tools were removed. */
export function targetHeaders({ target, failed, isRouted, cache }: AdmittedCall): HeaderList {
  const { removedTools, upstream } = target;
  if (!isRouted && !cache && removedTools.length === 0) return {};
  const headers: Record<string, string> = {};
  if (removedTools.length > 0) {
    headers["x-service-removed-tools"] = headerValue(removedTools.join(", "));
  }
  if (cache) headers["x-service-cache"] = cache.hit ? "hit" : "miss";
  if (isRouted) {
    headers["x-service-upstream"] = upstream.name;
    headers["x-service-attempts"] = String(failed.length + 1);
  }
  return headers;
}

/** The error with these headers. */
export function withTargetHeaders(error: unknown, call: AdmittedCall): unknown {
  return error instanceof ApiError && call.isRouted ? error.with(targetHeaders(call)) : error;
}

/**
 * Registers the call as running until the returned function is called: its hold is renewed, and it
 * is aborted when that fails.
 */
export function watchCall(services: InferenceDeps, call: AdmittedCall): () => void {
  const stop = services.running.add({
    ref: call.ref,
    id: call.id,
    requestId: call.requestId,
    model: call.input.model,
    async used() {
      const usage = await call.meter.usageSoFar();
      return {
        input: inputTokensOf(usage),
        output: outputTokensOf(usage),
        cost: billOf(services, call, usage).cost,
      };
    },
    cut: (reason) => call.controller.abort(reason),
  });
  return () => {
    stop();
    call.stopTimers();
    call.permit.release();
  };
}

/** What a call costs, and by which price. */
export interface CallBill {
  price: Price;
  used: Used;
  cost: Amount;
  /** What the response costs by its provider's price list; null where that is not known. */
  upstreamCost: Amount | null;
}

/** A stated cost is charged up to so many times the hold, and always up to five hundredths. */
const statedFactor = 10n;
const statedAlways = fromDecimal("0.05");

/** A cost that the provider states, lowered to the most that is charged of one. */
function statedUpTo(price: Price, stated: bigint | null, held: Amount): bigint | null {
  if (stated === null || price.statedPercent === null) return stated;
  const most = statedFactor * held > statedAlways ? statedFactor * held : statedAlways;
  const bound = statedForCost(price.statedPercent, toAmount(most));
  return stated < bound ? stated : bound;
}

/** What a bill depends on. */
export interface BilledCall
  extends Pick<AdmittedCall, "meter" | "held" | "receivedAt" | "caller" | "cache"> {
  target: CallTarget;
}

/** Returns what the call costs with this usage: by the model and the tier that answered. */
export function billOf(
  { prices }: Pick<InferenceDeps, "prices">,
  call: BilledCall,
  usage: TokenUsage,
): CallBill {
  const { meter, target: { input, terms, model, target: { place } } } = call;
  const { held, receivedAt: at, caller: { snapshot: { project } } } = call;
  const { toolCalls, searchContext, serviceTier, statedCost } = meter.extras;
  const served = meter.servedModel ?? model;
  // Units are priced by the request: a served model may have no price for them.
  const { price, listPrice } = served === model || input.units
    ? terms
    : prices.servedTerms(project, { requested: model, served, terms, place, at });
  const used: Used = {
    counts: usage,
    toolCalls,
    searchContext: searchContext ?? input.extras.searchContext,
    ...(input.units && meter.producedOutput
      ? { units: usedUnits(input.units, meter.units, price.table.standard.base.units) }
      : {}),
    producedOutput: meter.producedOutput,
    serviceTier: meter.servedTier ?? serviceTier ?? input.extras.serviceTier,
    statedCost: statedUpTo(price, statedCost, held),
    ...(call.cache?.hit ? { costFactor: call.cache.costFactor } : {}),
  };
  const cost = costOfUse(price, used);
  // A list without the unit's price would state a cost of zero.
  const isListed = listPrice && (!input.units || !pricesOnlyUnits(price));
  const upstreamCost = isListed ? costOfUse(listPrice, used) : null;
  return { price, used, cost, upstreamCost: call.cache?.hit ? zero : upstreamCost };
}

/** Whether output may have used up the hold: compares lengths only, and is mostly false. */
export function mayExceedHold({ meter, target: { quote }, input, cache }: AdmittedCall): boolean {
  return !cache?.hit && !meter.surelyWithin(quote.cap * input.choices);
}

/** Whether our own count says that the output has used up the hold. */
export async function exceedsHold({ meter, held, target }: AdmittedCall): Promise<boolean> {
  const input = inputTokensOf(await meter.usage());
  const output = await meter.countOutput();
  return output >= affordableOutput(target.priced, { spendable: held, input, choices: 1 });
}

/** Returns the ending of a call that failed with this error. */
export function failedEnding(error: unknown): Extract<CallEnding, { kind: "failed" }> {
  if (!(error instanceof ApiError)) {
    return { kind: "failed", errorCode: "internal_error", status: 500 };
  }
  const { status } = error;
  // Our own limits refuse with the same code.
  if (error instanceof UpstreamError && error.kind === "rate_limited") {
    return { kind: "failed", errorCode: "upstream_rate_limited", status };
  }
  // An upstream's refusal often has no code of its own.
  return { kind: "failed", errorCode: error.code ?? error.type, status };
}

/** Returns `usage` for the caller, with the cost that was charged. */
export function usageBody(
  { format, meter }: AdmittedCall,
  { usage, entry }: { usage: TokenUsage; entry: Entry },
): JsonObject {
  return format.writeUsage(usage, { reported: meter.reported, cost: absoluteAmount(entry) });
}

/**
 * What happens to a stream whose client disconnects: `drain` reads it to its end, because hidden
 * reasoning and files at addresses cannot be counted; `estimate` aborts it and charges what was
 * produced.
 */
export function abortPolicy(call: AdmittedCall): "estimate" | "drain" {
  const { terms, upstream, input, reasoning, media } = call.target;
  const hasUnknownMedia = (media.unknown ?? 0) > 0;
  const hides = input.asksReasoning || reasoning.isPossible() || hasUnknownMedia;
  return terms.onAbort ?? upstream.onAbort ?? (hides ? "drain" : "estimate");
}
