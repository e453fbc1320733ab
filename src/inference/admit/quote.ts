import { type Amount, toAmount, zero } from "../../base/money.ts";
import type { AvailableFunds, CountFirst, Quote } from "../../ledger/hold.ts";
import {
  affordableInput,
  affordableOutput,
  costBound,
  isInputPriced,
  type PricedCall,
} from "../../pricing/price.ts";
import type { ModelTerms } from "../../pricing/terms.ts";
import type { ModelRequest } from "../model_request.ts";
import { thinkingRoom } from "./thinking_room.ts";

/** The most that a response of one target can cost, and its output bound. */
export interface TargetQuote extends Quote {
  /** Output tokens for each choice, which bound the upstream's response. */
  cap: number;
  /** What bounds the output below what was asked for, or below what is usual; null for nothing. */
  limitedBy: OutputLimit | null;
  /** The balance before the hold. */
  balance: Amount;
}

/**
 * What can bound the output of a response: the balance, a limit of spending or a key's budget, the
 * owner's limit on output, or that of the model.
 */
type OutputLimit = "balance" | "limit" | "project" | "model";

/** The quote of a call: the most that any of its targets can cost. */
export interface CallQuote extends Quote {
  /** Quotes by target; null for a target that the balance does not pay for. */
  targets: readonly (TargetQuote | null)[];
}

/** The prompt's tokens: bounded by bytes, and counted only when that bound cannot be paid. */
export interface PromptSize {
  bound: number;
  counted: number | null;
  /** A lower bound, where counting stopped because the prompt could not be paid. */
  atLeast: number;
  /**
   * Tokens that content of unknown size may have besides. Money for them is held as far as there is
   * some, and they are never a reason to refuse a call.
   */
  unknown?: number;
}

/**
 * The output, in tokens, for which a response is worth starting now, rather than waiting for holds
 * to end.
 */
const worthHavingTokens = 1_024;
/**
 * The output, in tokens, up to which money is not shared. Where it does not pay for all that is
 * wanted, a call takes no more than half of it, so that the user's other calls can start too, but
 * at least this many tokens.
 */
const sharedTokensMin = 256;

/** The output bound regardless of money. */
interface WantedOutput {
  tokens: number;
  /** What makes it less than the caller asked for, or than is usual where they do not say. */
  limitedBy: "project" | "model" | null;
}

/**
 * The output bound of the caller, the model and the owner. Bounds of the model and the owner make
 * room for the thinking that the caller asks for.
 */
function wantedOutput(request: ModelRequest, terms: ModelTerms): WantedOutput {
  // No field tells the upstream.
  if (request.outputTokens !== undefined) return { tokens: request.outputTokens, limitedBy: null };
  const room = thinkingRoom(request);
  const asked = request.maxTokens ?? Math.max(usualOutput(terms), room);
  const ofOwner = Math.max(terms.maxOutputTokens, room);
  const ofModel = Math.max(terms.modelOutputTokens, room);
  if (asked <= ofOwner && asked <= ofModel) return { tokens: asked, limitedBy: null };
  return ofOwner <= ofModel
    ? { tokens: ofOwner, limitedBy: "project" }
    : { tokens: ofModel, limitedBy: "model" };
}

/** The bound where the caller asks for none: a longer one of the owner's, up to the model's. */
function usualOutput(terms: ModelTerms): number {
  const { maxOutputTokens, modelOutputTokens, usualOutputTokens } = terms;
  const ofOwner = Number.isFinite(maxOutputTokens) ? maxOutputTokens : 0;
  return Math.min(Math.max(usualOutputTokens, ofOwner), modelOutputTokens);
}

/** The fewest affordable output tokens, at most `wanted`, for which a call is started. */
function minimumTokens(
  request: ModelRequest,
  terms: ModelTerms,
  { wanted, reasons }: { wanted: number; reasons: boolean },
): number {
  if (request.outputTokens !== undefined) return request.outputTokens;
  const whole = request.structured || request.asksReasoning || reasons;
  const minimum = whole ? terms.minStructuredOutputTokens : terms.minOutputTokens;
  return Math.min(Math.max(minimum, thinkingRoom(request)), wanted);
}

type QuoteOf<Q> = (funds: AvailableFunds) => Q | CountFirst | null;

/**
 * The hold of a call, whichever of its targets answers: as much as the dearest of those that the
 * money pays for. Null where it pays for none.
 */
export function quoteCall(quotes: readonly QuoteOf<TargetQuote>[]): QuoteOf<CallQuote> {
  return (funds) => {
    let countTo: number | null = null;
    let best: TargetQuote | null = null;
    let amount: Amount = zero;
    const targets: (TargetQuote | null)[] = [];
    for (const quote of quotes) {
      const quoted = quote(funds);
      if (quoted && "countTo" in quoted) {
        countTo = Math.max(countTo ?? 0, quoted.countTo);
        continue;
      }
      targets.push(quoted);
      best ??= quoted;
      if (quoted && quoted.amount > amount) amount = quoted.amount;
    }
    if (countTo !== null) return { countTo };
    return best && { amount, reducedByHolds: best.reducedByHolds, targets };
  };
}

/**
 * The hold of one target's response out of `available`: the prompt's bound, the output cap for
 * every choice and the request fee. Files of unknown size may take all of it. `countTo` asks for
 * the prompt to be counted first; null means that too little is left.
 */
export function quoteTarget(
  request: ModelRequest,
  terms: ModelTerms,
  { priced, prompt, reasons }: {
    priced: PricedCall;
    prompt: PromptSize;
    /** Whether the model is known to reason before it writes. */
    reasons: boolean;
  },
): QuoteOf<TargetQuote> {
  const { tokens: wanted, limitedBy } = wantedOutput(request, terms);
  const minimum = minimumTokens(request, terms, { wanted, reasons });
  const input = prompt.counted ?? prompt.bound;
  const capFor = (spendable: Amount, tokens = input) =>
    affordableOutput(priced, { spendable, input: tokens, choices: request.choices });
  const inputFor = (spendable: Amount) =>
    affordableInput(priced, { spendable, output: minimum, choices: request.choices });
  const most = input + (prompt.unknown ?? 0);
  const costOf = (cap: number) => costBound(priced, { input: most, output: cap * request.choices });
  const shareOf = (available: Amount, affordable: number) => {
    const least = Math.max(minimum, sharedTokensMin);
    return Math.min(affordable, Math.max(capFor(halfOf(available)), least));
  };
  const holdFor = (cap: number, available: Amount) => {
    const cost = costOf(cap);
    return cost < available || most === input ? cost : available;
  };
  return ({ available, balanceOnly, withoutOwnHolds, balance }) => {
    const affordable = capFor(available);
    if (affordable >= wanted) {
      const amount = holdFor(wanted, available);
      const isShort = amount < costOf(wanted);
      return {
        amount,
        cap: wanted,
        limitedBy,
        reducedByHolds: isShort && available < withoutOwnHolds,
        balance,
      };
    }
    if (prompt.counted === null && isInputPriced(priced)) {
      const countTo = inputFor(balance);
      // Counting is pointless when not even the least that the prompt can have can be paid.
      const isPointless = countTo < 1 || capFor(withoutOwnHolds, prompt.atLeast) < minimum;
      return isPointless ? null : { countTo };
    }
    if (affordable < minimum) return null;
    const best = Math.min(wanted, capFor(withoutOwnHolds), worthHavingTokens);
    const reducedByHolds = affordable < best;
    const cap = shareOf(available, affordable);
    return {
      amount: holdFor(cap, available),
      cap,
      limitedBy: capFor(balanceOnly) < wanted ? "balance" : "limit",
      reducedByHolds,
      balance,
    };
  };
}

function halfOf(amount: Amount): Amount {
  return toAmount(amount / 2n);
}

/**
 * The hold of a kept response: exactly its cost. One that costs nothing is only for users who could
 * pay for `uncached`, the call without the cache: others would get models' responses for nothing.
 */
export function quoteHit(
  { cost: amount, outputTokens }: { cost: Amount; outputTokens: number },
  uncached: QuoteOf<TargetQuote>,
): QuoteOf<TargetQuote> {
  return (funds) => {
    const { available, balance } = funds;
    const whole = amount === 0n ? uncached(funds) : null;
    if (whole && "countTo" in whole) return whole;
    if (amount === 0n ? whole === null : amount > available) return null;
    return { amount, cap: outputTokens, limitedBy: null, reducedByHolds: false, balance };
  };
}
