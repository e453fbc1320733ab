import { ApiError } from "../base/errors.ts";
import { zero } from "../base/money.ts";
import type { AccountRef } from "../ledger/account.ts";
import { balanceDepletedEvent } from "../ledger/events.ts";
import type { HoldResult, RateLimitState } from "../ledger/hold.ts";
import type { PublicRefusalReason } from "../ledger/refusal.ts";
import { type BalanceView, viewBalance } from "../ledger/view.ts";
import { messageFor } from "../paywall/messages.ts";
import { requireActive } from "../projects/active.ts";
import { countRefusalHourly } from "../summaries/hourly_counters.ts";
import type { AdmittedCall, InferenceCall, InferenceDeps } from "./call.ts";
import {
  callBlockedEvent,
  callPaywalledEvent,
  callStartedEvents,
  rateLimitedEvent,
  userTrigger,
} from "./events.ts";
import { exceededLimit, type Permit, rateLimitedError } from "./rate_limiter.ts";
import { UsageMeter } from "./usage_meter.ts";
import {
  boundByBytes,
  boundMedia,
  countPrompt,
  type PromptMedia,
  withTokenizerMargin,
} from "../formats/chat/prompt.ts";
import { type CallQuote, type PromptSize, quoteCall } from "./quote.ts";
import { awaitPrevious, runningRow, type StoredResponse } from "./idempotency.ts";
import type { Paywall } from "../formats/chat/paywall_reply.ts";
import { TimeSlice } from "../base/time_slice.ts";
import { plausibleUsage } from "../pricing/usage.ts";
import { loadTokenizer } from "../pricing/tokenizer.ts";

/** What became of a request for an answer. `settings_moved`: read the settings again. */
export type Admission =
  | { kind: "admitted"; answer: AdmittedCall }
  | { kind: "paywalled"; paywall: Paywall; rates: readonly RateLimitState[] }
  | { kind: "replayed"; stored: StoredResponse }
  | { kind: "settings_moved" };

/**
 * Holds what the answer may cost at most, before anything is sent. Throws 400 for content that
 * cannot be priced, 403 for an archived project, 422 for a reused idempotency key, 429 at too many
 * running answers.
 */
export async function admitCall(services: InferenceDeps, ask: InferenceCall): Promise<Admission> {
  const { key, snapshot: { project: { id: projectId, limits } } } = ask.caller;
  const { rateLimiter } = services;
  let place: Permit | null = null;
  try {
    // Before they take what the key leaves to others.
    const who = { projectId, user: ask.user };
    const tooOften = rateLimiter.exceededByRefusals(who, limits.user.requestsPerMinute);
    if (tooOften) return await refuseHaste(services, ask, tooOften);
    const entered = rateLimiter.acquire(key.id, limits.key);
    if ("limited" in entered) return await refuseHaste(services, ask, entered.limited);
    place = entered;
    const admission = await admitTo(services, ask, place);
    if (admission.kind !== "admitted") place.release();
    if (admission.kind !== "paywalled") return admission;
    return { ...admission, rates: [...admission.rates, place.rateLimits] };
  } catch (error) {
    place?.release();
    return await tellIfCrowded(services, ask, error);
  }
}

async function admitTo(
  services: InferenceDeps,
  ask: InferenceCall,
  place: Permit,
): Promise<Admission> {
  const media = boundMedia(ask.chat, ask.terms.mediaTokens);
  const prompt: PromptSize = { bound: boundByBytes(ask.chat, media), counted: null, atLeast: 0 };
  const { ref, caller: { snapshot: { project } } } = ask;
  for (let replay = ask.previous;; replay = await awaitPrevious(services, ask)) {
    if (replay?.stored) return { kind: "replayed", stored: replay.stored };
    requireActive(project);
    if (!ref) {
      const balance = viewBalance(zero, zero, project.currency);
      const nobody = { kind: "authorization_required" as const, balance };
      return await turnAway(services, ask, nobody);
    }
    const remains = replay?.remains ?? null;
    const held = await placeHold(services, { ...ask, ref }, { prompt, remains });
    switch (held.kind) {
      case "marked":
        continue;
      case "count": {
        const tokens = await countInput(services, ask, media, held.countTo);
        prompt.atLeast = withTokenizerMargin(tokens);
        if (tokens <= held.countTo) prompt.counted = prompt.atLeast;
        continue;
      }
      case "settings_moved":
        return { kind: "settings_moved" };
      case "held": {
        const placed = { ...ask, ref, permit: place, rateLimits: [held.rates, place.rateLimits] };
        return {
          kind: "admitted",
          answer: open(services, placed, { quote: held.quote, media, prompt }),
        };
      }
      case "rate_limited":
        return await refuseHaste(services, ask, held.rates, held.balance.available);
      default:
        return await turnAway(services, ask, held, [held.rates]);
    }
  }
}

async function placeHold(
  services: InferenceDeps,
  ask: InferenceCall & { ref: AccountRef },
  { prompt, remains }: { prompt: PromptSize; remains: Uint8Array | null },
): Promise<HoldResult<CallQuote>> {
  const { ref, id, idempotency, caller, chat, terms, preparedBody } = ask;
  return await services.holds.place<CallQuote>({
    ref,
    id,
    snapshot: caller.snapshot,
    quote: quoteCall(chat, terms, prompt),
    meanwhile: ({ cap }) => preparedBody.prepare(cap),
    events: callStartedEvents(ask),
    mark: idempotency && runningRow(idempotency, { ref, holdId: id, remains }),
  });
}

async function countInput(
  { deps: { clock } }: InferenceDeps,
  { chat }: InferenceCall,
  media: PromptMedia,
  most = Infinity,
): Promise<number> {
  const count = await loadTokenizer();
  return await countPrompt(chat, media, { count, stretch: new TimeSlice(clock), most });
}

function open(
  services: InferenceDeps,
  ask: InferenceCall & Pick<AdmittedCall, "ref" | "permit" | "rateLimits">,
  { quote, media, prompt }: { quote: CallQuote; media: PromptMedia; prompt: PromptSize },
): AdmittedCall {
  const meter = new UsageMeter({
    choices: ask.chat.choices,
    plausible: plausibleUsage(prompt.bound, quote.cap * ask.chat.choices),
    countInput: (most) => countInput(services, ask, media, most),
    clock: services.deps.clock,
  });
  return { ...ask, quote, meter, controller: new AbortController() };
}

/** Whoever is faster than the project allows gets 429, or a message, as the project has it. */
async function refuseHaste(
  services: InferenceDeps,
  ask: InferenceCall,
  rates: RateLimitState,
  balance = "0",
): Promise<Admission> {
  const { caller: { snapshot: { project } }, user } = ask;
  const limit = exceededLimit(rates)?.limit ?? "requests";
  services.deps.metrics.refusals[limit].add();
  const date = new Date(services.deps.clock.now()).toISOString();
  const limited = rateLimitedEvent(ask, { limit, date });
  countRefusal(services, ask, "rate_limit_exceeded");
  if (project.limits.reply === "error") {
    await services.emit(project.id, [limited, callBlockedEvent(ask, "rate_limit_exceeded")]);
    throw rateLimitedError(rates);
  }
  await services.emit(project.id, [limited, callPaywalledEvent(ask, "rate_limited")]);
  const asked = { obstacle: "insufficient_funds", trigger: userTrigger(user) } as const;
  const url = await services.linkFor(project, user, asked);
  const languages = ask.request.headers.get("accept-language");
  const message = messageFor(project, "rate_limit", { url, balance, languages });
  const paywall = { reason: "limit_reached" as const, message, url };
  return { kind: "paywalled", paywall, rates: [rates] };
}

/** That too many answers run is told to those who listen, and thrown on. */
async function tellIfCrowded(
  services: InferenceDeps,
  ask: InferenceCall,
  error: unknown,
): Promise<never> {
  if (error instanceof ApiError && error.code === "concurrency_limit") {
    services.deps.metrics.refusals.concurrency.add();
    countRefusal(services, ask, error.code);
    await services.emit(ask.caller.snapshot.project.id, [callBlockedEvent(ask, error.code)]);
  }
  throw error;
}

/** For the owner's overview: written with whatever is written next. */
function countRefusal({ deps }: InferenceDeps, ask: InferenceCall, reason: string): void {
  const { id } = ask.caller.snapshot.project;
  deps.committer.count(countRefusalHourly(id, reason, deps.clock.now()));
}

type NotPaid = Omit<
  Exclude<Extract<HoldResult<CallQuote>, { balance: BalanceView }>, { kind: "rate_limited" }>,
  "rates"
>;

/** Nothing is held, so that it counts among the user's requests here; haste has its own count. */
async function turnAway(
  services: InferenceDeps,
  ask: InferenceCall,
  notPaid: NotPaid,
  rates: readonly RateLimitState[] = [],
): Promise<Admission> {
  const { id: projectId, limits } = ask.caller.snapshot.project;
  const paywall = await paywallFor(services, ask, notPaid);
  const who = { projectId, user: ask.user };
  const counted = services.rateLimiter.countRefused(who, limits.user.requestsPerMinute);
  return { kind: "paywalled", paywall, rates: [...rates, counted] };
}

async function paywallFor(
  services: InferenceDeps,
  ask: InferenceCall,
  { kind, balance: { available } }: NotPaid,
): Promise<Paywall> {
  const { linkFor, emit } = services;
  services.deps.metrics.refusedMoney.chat[kind].add();
  countRefusal(services, ask, kind);
  const { caller: { snapshot: { project } }, user, ref } = ask;
  const asked = { trigger: userTrigger(user), requestedAmount: null, available };
  const empty = kind === "insufficient_funds" && ref ? [balanceDepletedEvent(ref, asked)] : [];
  const url = await linkFor(project, user, { obstacle: kind, trigger: userTrigger(user) });
  await emit(project.id, [callPaywalledEvent(ask, kind), ...empty]);
  const languages = ask.request.headers.get("accept-language");
  const message = messageFor(project, kind, { url, balance: available, languages });
  return { reason: reasons[kind], message, url };
}

// The holds of running answers stand in the way of money, not of leave to spend it.
const reasons: Record<NotPaid["kind"], PublicRefusalReason> = {
  insufficient_funds: "insufficient_funds",
  busy: "insufficient_funds",
  authorization_required: "authorization_required",
  limit_reached: "limit_reached",
  spend_limit: "limit_reached",
};

/** 404: the project has no price for this model, so it is not served. */
export function modelNotFound(model: string): ApiError {
  return new ApiError(404, {
    message: `The model '${model}' does not exist, or has no price in this project.`,
    code: "model_not_found",
    param: "model",
  });
}
