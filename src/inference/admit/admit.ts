import { ApiError } from "../../base/errors.ts";
import { zero } from "../../base/money.ts";
import type { AccountRef } from "../../ledger/account.ts";
import type { HoldResult } from "../../ledger/hold.ts";
import { viewBalance } from "../../ledger/api/view.ts";
import { withTokenizerMargin } from "../../pricing/tokenizer.ts";
import { requireActive } from "../../projects/active.ts";
import { budgetsOfKey } from "../../projects/key_budget.ts";
import { userLimitsOf } from "../../projects/user_limits.ts";
import { beginCall } from "../ask/ask_targets.ts";
import type { BoundedTarget, PaidTarget } from "../attempt.ts";
import type { AdmittedCall, InferenceCall, ReadCall, RefusableCall } from "../call.ts";
import {
  completeCall,
  type CompleteServices,
  findTargetsOf,
  type FoundCall,
  type TargetServices,
} from "./complete_call.ts";
import { callStartedEvents } from "../finish/events.ts";
import {
  awaitPrevious,
  type PreviousCall,
  runningRow,
  type StoredResponse,
} from "../receive/idempotency.ts";
import { lookAtMoney, takesLong } from "./money_first.ts";
import { countForHold, type CountingServices } from "./prompt_counting.ts";
import { boundByBytes, boundMedia } from "./prompt_size.ts";
import { pricedCall } from "./priced_call.ts";
import { type CallQuote, type PromptSize, quoteCall, quoteHit, quoteTarget } from "./quote.ts";
import type { Permit } from "./rate_limiter.ts";
import type { Refusal } from "./refuse.ts";
import type { InferenceServices } from "../services.ts";

/** The services that admitting a call needs. */
type AdmitServices =
  & TargetServices
  & CompleteServices
  & CountingServices
  & Pick<InferenceServices, "holds" | "rateLimiter" | "waiters">;

/**
 * The outcome of an admission. `settings_moved`: the settings changed and have to be read again.
 */
export type Admission =
  | { kind: "admitted"; admitted: AdmittedCall }
  | { kind: "refused"; refusal: Refusal; call: RefusableCall }
  | { kind: "replayed"; stored: StoredResponse }
  | { kind: "settings_moved" };

/** The decision about a call, before the reason of a refusal has become a response. */
type Decision = Exclude<Admission, { kind: "refused" }> | { kind: "refused"; refusal: Refusal };

/**
 * Writes a hold for the most that the response can cost, before anything is sent upstream. Rate
 * limits come first, then whether the user can pay anything at all, and only then what takes long:
 * reading files, loading a conversation, counting. Throws 400 for content that cannot be priced,
 * 403 for an archived project, 422 for a reused idempotency key, and what `findTargetsOf` throws.
 */
export async function admitCall(
  services: AdmitServices,
  read: ReadCall,
  previous: PreviousCall | null,
): Promise<Admission> {
  const { user, caller: { key, snapshot: { project } } } = read;
  const { rateLimiter } = services;
  const refused = (refusal: Refusal, ref: AccountRef | null = null): Admission => (
    { kind: "refused", refusal, call: { ...read, ref } }
  );
  // A user who was refused too often must not take from the key's limit, which others share.
  const exceeded = rateLimiter.exceededByRefusals(
    { projectId: project.id, user },
    userLimitsOf(project, user).requestsPerMinute,
  );
  if (exceeded) return refused(rateLimited(exceeded).refusal);
  let permit: Permit | null = null;
  let ref: AccountRef | null = null;
  try {
    const acquired = rateLimiter.acquire(key.id, project.limits.key);
    if ("limited" in acquired) return refused(rateLimited(acquired.limited).refusal);
    permit = acquired;
    const found = await findTargetsOf(services, read);
    ref = found.call.ref;
    const decision = await admitWithPermit(services, found, { permit, previous });
    if (decision.kind !== "admitted") permit.release();
    return decision.kind === "refused" ? refused(decision.refusal, ref) : decision;
  } catch (error) {
    permit?.release();
    if (!(error instanceof ApiError) || error.code !== "concurrency_limit") throw error;
    return refused({ reason: "concurrency_limit", error }, ref);
  }
}

async function admitWithPermit(
  services: AdmitServices,
  found: FoundCall,
  { permit, previous: first }: { permit: Permit; previous: PreviousCall | null },
): Promise<Decision> {
  const { ref, caller: { snapshot: { project } } } = found.call;
  requireActive(project);
  if (!ref) return unauthorized(project.currency, permit);
  if (takesLong(found)) {
    const { call, turns } = found;
    const held = await lookAtMoney(services, { ...call, ref }, turns);
    if (held.kind !== "count") return decisionOf(held, permit);
  }
  const completing = completeCall(services, found);
  const call = completing instanceof Promise ? await completing : completing;
  const targets = boundTargets(call);
  const prompt = sizeByBytes(targets);
  let counting = 0;
  for (let previous = first;; previous = await awaitPrevious(services, call)) {
    if (previous?.stored) return { kind: "replayed", stored: previous.stored };
    const remains = previous?.remains ?? null;
    const held = await placeHold(services, call, { ref, targets, prompt, remains });
    switch (held.kind) {
      case "marked":
        continue;
      case "count": {
        const { input, media } = widest(targets);
        const counted = { ...call, input };
        const { tokens, work } = await countForHold(services, counted, {
          media,
          most: held.countTo,
        });
        counting += work;
        takeCount(prompt, tokens, held.countTo);
        continue;
      }
      case "held": {
        services.unpaidCounting.giveBack(call.caller, counting);
        const rateLimits = [held.rates, permit.rateLimits];
        const placed = { ref, permit, rateLimits, prompt, ...paidBy(held.quote, targets) };
        return { kind: "admitted", admitted: beginCall(services, call, placed) };
      }
      default:
        return decisionOf(held, permit, prompt.atLeast);
    }
  }
}

/**
 * The decision that follows from a hold that was not placed; `countedTokens` were counted before.
 */
function decisionOf(
  held: Exclude<HoldResult<CallQuote>, { kind: "held" | "count" }>,
  permit: Permit,
  countedTokens = 0,
): Decision {
  switch (held.kind) {
    case "settings_moved":
    case "marked":
      return { kind: "settings_moved" };
    case "rate_limited":
      return rateLimited(held.rates, held.balance.available, permit);
    default: {
      const rateLimits = [held.rates, permit.rateLimits];
      const refusal = { reason: held.kind, balance: held.balance, rateLimits, countedTokens };
      return { kind: "refused", refusal };
    }
  }
}

/** The amount of the hold, and the targets whose cost it covers. */
function paidBy(
  { amount: held, targets: quotes }: CallQuote,
  targets: readonly BoundedTarget[],
): Pick<AdmittedCall, "held" | "targets"> {
  const paid: PaidTarget[] = [];
  for (const [at, target] of targets.entries()) {
    const quote = quotes[at];
    if (quote) paid.push(Object.assign(target, { quote }));
  }
  return { held, targets: paid };
}

/** Bounds what each target can cost. */
function boundTargets({ format, targets, hiddenTokens }: InferenceCall): BoundedTarget[] {
  return targets.map((target) => {
    const { input, terms } = target;
    const media = boundMedia(format, input, terms);
    // What the prompt refers to may be of any kind.
    media.tokens += hiddenTokens;
    return { ...target, media, priced: pricedCall(input, terms, { hasMedia: media.tokens > 0 }) };
  });
}

/**
 * The target for which the prompt may have the most tokens: a bound for it holds for all of them.
 */
function widest(targets: readonly BoundedTarget[]): BoundedTarget {
  const boundOf = ({ input, media }: BoundedTarget) =>
    boundByBytes(input, media) + (media.unknown ?? 0);
  return targets.reduce((most, other) => boundOf(other) > boundOf(most) ? other : most);
}

function sizeByBytes(targets: readonly BoundedTarget[]): PromptSize {
  const { input, media } = widest(targets);
  const { unknown = 0 } = media;
  return { bound: boundByBytes(input, media), counted: null, atLeast: 0, unknown };
}

/**
 * Replaces the prompt's bound by a count. Without a count, the bound by bytes remains. A provider's
 * count never exceeds it, and our own may.
 */
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
): Extract<Decision, { kind: "refused" }> {
  const rateLimits = permit ? [exceeded, permit.rateLimits] : [exceeded];
  const refusal = { reason: "rate_limited" as const, exceeded, available, rateLimits };
  return { kind: "refused", refusal };
}

function unauthorized(currency: string, permit: Permit): Decision {
  const balance = viewBalance(zero, zero, currency);
  const rateLimits = [permit.rateLimits];
  return { kind: "refused", refusal: { reason: "authorization_required", balance, rateLimits } };
}

function placeHold(
  { holds, deps, texts }: Pick<InferenceServices, "holds" | "deps" | "texts">,
  call: InferenceCall,
  { ref, targets, prompt, remains }: {
    ref: AccountRef;
    targets: readonly BoundedTarget[];
    prompt: PromptSize;
    remains: Uint8Array | null;
  },
): Promise<HoldResult<CallQuote>> {
  const { id, user, input, idempotency, caller, cache } = call;
  const hit = cache?.hit;
  const quotes = targets.map(({ input, terms, priced, reasoning }) => {
    const quote = quoteTarget(input, terms, { priced, prompt, reasons: reasoning.isKnown() });
    return hit ? quoteHit(hit, quote) : quote;
  });
  return holds.place<CallQuote>({
    ref,
    id,
    snapshot: caller.snapshot,
    quote: quoteCall(quotes),
    budgets: budgetsOfKey(deps.kv, caller.snapshot.project.id, caller.key),
    events: callStartedEvents({ id, user, input, ref }),
    mark: idempotency && runningRow({ texts }, idempotency, { ref, holdId: id, remains }),
  });
}
