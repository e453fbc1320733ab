import { ApiError } from "../base/errors.ts";
import { zero } from "../base/money.ts";
import { TimeSlice } from "../base/time_slice.ts";
import type { AccountRef } from "../ledger/account.ts";
import type { HoldResult } from "../ledger/hold.ts";
import { viewBalance } from "../ledger/view.ts";
import { loadTokenizer, withTokenizerMargin } from "../pricing/tokenizer.ts";
import { type PricedCall, pricesOnlyUnits } from "../pricing/price.ts";
import { plausibleUsage } from "../pricing/usage.ts";
import { requireActive } from "../projects/active.ts";
import type { AdmittedCall, InferenceCall, InferenceDeps } from "./call.ts";
import { callStartedEvents } from "./events.ts";
import { awaitPrevious, runningRow, type StoredResponse } from "./idempotency.ts";
import { countForHold } from "./prompt_counting.ts";
import { boundByBytes, boundMedia, countPrompt, type PromptMedia } from "./prompt_size.ts";
import { pricedCall } from "./priced_call.ts";
import { type CallQuote, type PromptSize, quoteCall } from "./quote.ts";
import type { Permit } from "./rate_limiter.ts";
import type { Refusal } from "./refuse.ts";
import { UsageMeter } from "./usage_meter.ts";

/**
 * The outcome of an admission. `settings_moved`: the settings changed and have to be read again.
 */
export type Admission =
  | { kind: "admitted"; admitted: AdmittedCall }
  | { kind: "refused"; refusal: Refusal }
  | { kind: "replayed"; stored: StoredResponse }
  | { kind: "settings_moved" };

/**
 * Writes a hold for the most that the response can cost, before anything is sent upstream. Throws
 * 400 for content that cannot be priced, 403 for an archived project, 422 for a reused idempotency
 * key.
 */
export async function admitCall(services: InferenceDeps, call: InferenceCall): Promise<Admission> {
  const { user, caller: { key, snapshot: { project: { id: projectId, limits } } } } = call;
  const { rateLimiter } = services;
  // A user who was refused too often must not take from the key's limit, which others share.
  const exceeded = rateLimiter.exceededByRefusals(
    { projectId, user },
    limits.user.requestsPerMinute,
  );
  if (exceeded) return rateLimited(exceeded);
  let permit: Permit | null = null;
  try {
    const acquired = rateLimiter.acquire(key.id, limits.key);
    if ("limited" in acquired) return rateLimited(acquired.limited);
    permit = acquired;
    const admission = await admitWithPermit(services, call, permit);
    if (admission.kind !== "admitted") permit.release();
    return admission;
  } catch (error) {
    permit?.release();
    if (!(error instanceof ApiError) || error.code !== "concurrency_limit") throw error;
    return { kind: "refused", refusal: { reason: "concurrency_limit", error } };
  }
}

async function admitWithPermit(
  services: InferenceDeps,
  call: InferenceCall,
  permit: Permit,
): Promise<Admission> {
  const { format, input, ref, caller: { snapshot: { project } } } = call;
  const media = boundMedia(format, input, call.terms);
  // What the prompt refers to may be of any kind.
  media.tokens += call.hiddenTokens;
  const priced = pricedCall(input, call.terms, { hasMedia: media.tokens > 0 });
  const prompt = sizeByBytes(input, media);
  for (let previous = call.previous;; previous = await awaitPrevious(services, call)) {
    if (previous?.stored) return { kind: "replayed", stored: previous.stored };
    requireActive(project);
    if (!ref) return unauthorized(project.currency, permit);
    const remains = previous?.remains ?? null;
    const held = await placeHold(services, { ...call, ref }, { priced, prompt, remains });
    switch (held.kind) {
      case "marked":
        continue;
      case "count": {
        const tokens = await countForHold(services, call, { media, most: held.countTo });
        takeCount(prompt, tokens, held.countTo);
        continue;
      }
      case "settings_moved":
        return { kind: "settings_moved" };
      case "held": {
        const rateLimits = [held.rates, permit.rateLimits];
        const placed = { ...call, ref, permit, rateLimits, priced };
        return {
          kind: "admitted",
          admitted: admit(services, placed, { quote: held.quote, media, prompt }),
        };
      }
      case "rate_limited":
        return rateLimited(held.rates, held.balance.available, permit);
      default: {
        const rateLimits = [held.rates, permit.rateLimits];
        const refusal = {
          reason: held.kind,
          balance: held.balance,
          rateLimits,
          countedTokens: prompt.atLeast,
        };
        return { kind: "refused", refusal };
      }
    }
  }
}

function sizeByBytes(input: InferenceCall["input"], media: PromptMedia): PromptSize {
  const { unknown = 0 } = media;
  return { bound: boundByBytes(input, media), counted: null, atLeast: 0, unknown };
}

/** Without a count, the bound by bytes remains. It is exact, and our own count may exceed it. */
function takeCount(prompt: PromptSize, tokens: number | null, countTo: number): void {
  const { bound } = prompt;
  if (tokens === null) {
    prompt.counted = bound;
    return;
  }
  prompt.atLeast = Math.min(bound, withTokenizerMargin(tokens));
  if (Math.min(bound, tokens) <= countTo) prompt.counted = prompt.atLeast;
}

function rateLimited(
  exceeded: Permit["rateLimits"],
  available = "0",
  permit?: Permit,
): Admission {
  const rateLimits = permit ? [exceeded, permit.rateLimits] : [exceeded];
  const refusal = { reason: "rate_limited" as const, exceeded, available, rateLimits };
  return { kind: "refused", refusal };
}

function unauthorized(currency: string, permit: Permit): Admission {
  const balance = viewBalance(zero, zero, currency);
  const rateLimits = [permit.rateLimits];
  return { kind: "refused", refusal: { reason: "authorization_required", balance, rateLimits } };
}

async function placeHold(
  { holds }: InferenceDeps,
  call: InferenceCall & { ref: AccountRef },
  { priced, prompt, remains }: {
    priced: PricedCall;
    prompt: PromptSize;
    remains: Uint8Array | null;
  },
): Promise<HoldResult<CallQuote>> {
  const { ref, id, idempotency, caller, input, terms } = call;
  return await holds.place<CallQuote>({
    ref,
    id,
    snapshot: caller.snapshot,
    quote: quoteCall(input, terms, { priced, prompt, reasons: call.reasoning.isKnown() }),
    events: callStartedEvents(call),
    mark: idempotency && runningRow(idempotency, { ref, holdId: id, remains }),
  });
}

async function countInput(
  { deps: { clock } }: InferenceDeps,
  { format, input }: InferenceCall,
  media: PromptMedia,
  most = Infinity,
): Promise<number> {
  const count = await loadTokenizer();
  return await countPrompt(format, input, { media, count, slice: new TimeSlice(clock), most });
}

function admit(
  services: InferenceDeps,
  call: InferenceCall & Pick<AdmittedCall, "ref" | "permit" | "rateLimits" | "priced">,
  { quote, media, prompt }: { quote: CallQuote; media: PromptMedia; prompt: PromptSize },
): AdmittedCall {
  const unknown = media.unknown ?? 0;
  const { made } = call.format;
  const meter = new UsageMeter({
    hasOutput: !call.format.isPassedOn || made !== undefined,
    countsTokens: !pricesOnlyUnits(call.terms.price),
    classes: made,
    choices: call.input.choices,
    plausible: plausibleUsage(
      prompt.bound + unknown,
      quote.cap * call.input.choices,
      call.format.readsMoreByTools?.(call.input),
    ),
    countInput: (most) => countInput(services, call, media, most),
    clock: services.deps.clock,
  });
  const hasUnknownMedia = unknown > 0;
  const controller = new AbortController();
  return { ...call, quote, meter, hasUnknownMedia, isBridged: false, controller };
}
