import {
  balanceHeldRetrySeconds,
  type RefusalReason,
  refusalReasons,
} from "../../base/refusal_reasons.ts";
import { ApiError } from "../../base/errors.ts";
import { corsHeaders, type HeaderList, headerValue, textResponse } from "../../base/response.ts";
import type { NewEvent } from "../../events/event.ts";
import { balanceDepletedEvent } from "../../ledger/events.ts";
import type { RateLimitState } from "../../ledger/hold.ts";

import type { BalanceView } from "../../ledger/api/view.ts";
import { messageFor } from "../../paywall/messages.ts";
import type { Project } from "../../projects/schema.ts";
import { userLimitsOf } from "../../projects/user_limits.ts";
import type { RefusableCall } from "../call.ts";
import type { Format } from "../format.ts";
import {
  callBlockedEvent,
  callPaywalledEvent,
  rateLimitedEvent,
  userTrigger,
} from "../finish/events.ts";
import type { PaywallMessage } from "../upstream_response.ts";
import { exceededLimit, rateHeaders, rateLimitedError } from "./rate_limiter.ts";
import { streamHeaders } from "../respond/stream_headers.ts";
import type { InferenceServices } from "../services.ts";
import { responseHead } from "../response_head.ts";

/** The services that counting a refusal and reporting it needs. */
export type ReportServices = Pick<InferenceServices, "deps" | "refusalReports">;
/** The services that refusing a call needs. */
export type RefuseServices =
  & ReportServices
  & Pick<InferenceServices, "conversion" | "linkFor" | "rateLimiter">;

/** Tokens of a prompt whose counting costs as much time as a request does. */
const tokensPerRequest = 10_000;

/** Why a call is refused, and the state of the rate limits. */
export type Refusal = MoneyRefusal | RateRefusal | ConcurrencyRefusal;

/** Returns the reason of a refusal as people read it in the log of requests. */
export function reasonOf({ reason }: Refusal): string {
  const ofMoney: Readonly<Record<string, { code: string }>> = refusalReasons;
  return ofMoney[reason]?.code ?? reason;
}

/** The user cannot pay, or is not allowed to spend. */
interface MoneyRefusal {
  reason: RefusalReason;
  balance: BalanceView;
  /** Tokens of the prompt that were counted before it was refused. */
  countedTokens?: number;
  rateLimits: readonly RateLimitState[];
}

/** A user or a key makes more requests or uses more tokens a minute than its limit allows. */
interface RateRefusal {
  reason: "rate_limited";
  exceeded: RateLimitState;
  /** How much the user can spend, as a decimal string. */
  available: string;
  rateLimits: readonly RateLimitState[];
}

/** A user or a key has too many calls running; `error` is the 429 that says so. */
interface ConcurrencyRefusal {
  reason: "concurrency_limit";
  error: ApiError;
}

/**
 * Counts a refusal, emits its events, and returns the paywall's message as a normal response, or as
 * a 402 where no response can say it or the project wants an error. Throws 429 for too many calls
 * at once, and for a rate limit where the project wants an error.
 */
export async function refuse(
  services: RefuseServices,
  call: RefusableCall,
  refusal: Refusal,
): Promise<Response> {
  switch (refusal.reason) {
    case "concurrency_limit":
      return await refuseConcurrency(services, call, refusal);
    case "rate_limited":
      return await refuseRate(services, call, refusal);
    default:
      return await refuseMoney(services, call, refusal);
  }
}

async function refuseConcurrency(
  services: ReportServices,
  call: RefusableCall,
  { reason, error }: ConcurrencyRefusal,
): Promise<never> {
  services.deps.metrics.refusals.concurrency.add();
  await report(services, call, reason, (count) => [callBlockedEvent(call, { reason, count })]);
  throw error;
}

/** Whether a call beyond a rate limit gets an error, and not a text. */
export function isToldByError({ limits }: Project, { kind }: Format): boolean {
  return limits.reply === "error" || kind === "passed";
}

async function refuseRate(
  services: RefuseServices,
  call: RefusableCall,
  { exceeded, available, rateLimits }: RateRefusal,
): Promise<Response> {
  const { project } = call.caller.snapshot;
  if (isToldByError(project, call.format)) return await refuseRateError(services, call, exceeded);
  await reportRate(services, call, { exceeded, isError: false });
  const { url } = await linkFor(services, call, "insufficient_funds");
  const message = messageFor(project, "rate_limit", {
    url,
    balance: available,
    languages: languagesOf(call),
  });
  const paywall = { reason: "limit_reached", url };
  return paywallResponse(call, { message, paywall }, rateLimits);
}

/** A call that is refused, as far as it is known before its body is read. */
type RefusedCall = Pick<RefusableCall, "id" | "user" | "caller"> & Partial<RefusableCall>;

/** Reports a call beyond a rate limit. Throws 429. */
export async function refuseRateError(
  services: ReportServices,
  call: RefusedCall,
  exceeded: RateLimitState,
): Promise<never> {
  await reportRate(services, call, { exceeded, isError: true });
  throw rateLimitedError(exceeded);
}

async function reportRate(
  services: ReportServices,
  { id, user, caller, ref = null, input }: RefusedCall,
  { exceeded, isError }: { exceeded: RateLimitState; isError: boolean },
): Promise<void> {
  const limit = exceededLimit(exceeded)?.limit ?? "requests";
  services.deps.metrics.refusals[limit].add();
  const date = new Date(services.deps.clock.now()).toISOString();
  const code = "rate_limit_exceeded";
  const facts = { id, user, ref, input: input ?? { model: null, stream: false } };
  await report(services, { user, caller }, code, (count) => [
    rateLimitedEvent(facts, { limit, date, count }),
    isError
      ? callBlockedEvent(facts, { reason: code, count })
      : callPaywalledEvent(facts, { reason: "rate_limited", count }),
  ]);
}

async function refuseMoney(
  services: RefuseServices,
  call: RefusableCall,
  { reason, balance: { available }, rateLimits, countedTokens = 0 }: MoneyRefusal,
): Promise<Response> {
  const { user, ref, caller: { snapshot: { project } } } = call;
  const { code, chat } = refusalReasons[reason];
  services.deps.metrics.refusedMoney.chat[code].add();
  if (code === "insufficient_funds") services.conversion.saw(project.id, user);
  const { url, events } = await linkFor(services, call, reason);
  const spent = { trigger: userTrigger(user), requestedAmount: null, available };
  const depleted = reason === "insufficient_funds" && ref ? [balanceDepletedEvent(ref, spent)] : [];
  await report(services, call, code, (count) => [
    callPaywalledEvent(call, { reason: code, count }),
    ...depleted,
    ...events,
  ]);
  const message = messageFor(project, code, {
    url,
    balance: available,
    languages: languagesOf(call),
  });
  // No hold is written, so the refusal counts toward the user's request rate here.
  const counted = services.rateLimiter.countRefused({ projectId: project.id, user }, {
    perMinute: userLimitsOf(project, user).requestsPerMinute,
    count: 1 + Math.floor(countedTokens / tokensPerRequest),
  });
  const isHeld = reason === "held_by_running";
  const paywall = {
    reason: chat,
    url,
    ...(isHeld ? { retryAfter: balanceHeldRetrySeconds } : {}),
  };
  return paywallResponse(call, { message, paywall }, [...rateLimits, counted]);
}

/** Reports a refusal; the end of the call counts it in the owner's summary. */
async function report(
  { refusalReports }: Pick<ReportServices, "refusalReports">,
  { caller, user }: Pick<RefusableCall, "caller" | "user">,
  reason: string,
  events: (count: number) => NewEvent[],
): Promise<void> {
  const { id: projectId } = caller.snapshot.project;
  await refusalReports.report({ projectId, user, reason, events });
}

function linkFor(
  services: Pick<InferenceServices, "linkFor">,
  { caller, user }: RefusableCall,
  reason: RefusalReason,
) {
  const { project } = caller.snapshot;
  return services.linkFor(project, user, { reason, trigger: userTrigger(user) });
}

function languagesOf({ request }: RefusableCall): string | null {
  return request.headers.get("accept-language");
}

function paywallResponse(
  call: RefusableCall,
  refusal: PaywallMessage,
  rateLimits: readonly RateLimitState[],
): Response {
  const { reason, url, retryAfter } = refusal.paywall;
  const { status, type, text } = writtenPaywall(call, refusal);
  return textResponse(status, text, {
    ...type,
    "x-request-id": call.requestId,
    "x-service-paywall": reason,
    "x-service-paywall-url": headerValue(URL.parse(url)?.href ?? url),
    ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }),
    ...rateHeaders(rateLimits),
  });
}

/** The paywall's message as a response of the call's format, or as an error that says it. */
function writtenPaywall(
  call: RefusableCall,
  refusal: PaywallMessage,
): { status: number; type: HeaderList; text: string } {
  const { format, input, requestId, caller: { snapshot: { project } } } = call;
  const json = { ...corsHeaders, "content-type": "application/json" };
  if (format.kind === "passed" || (input.requiresJson && project.paywallOnJson === "402")) {
    const { message, paywall: { reason: code } } = refusal;
    const error = new ApiError(402, { message, type: "payment_required", code });
    const body = format.errorBody ? format.errorBody(error, requestId) : error.body();
    return { status: 402, type: json, text: JSON.stringify(body) };
  }
  const text = format.writePaywall(refusal, input, responseHead(call));
  return { status: 200, type: input.stream ? streamHeaders : json, text };
}
