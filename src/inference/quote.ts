import type { Amount } from "../base/money.ts";
import type { AvailableFunds, CountFirst, Quote } from "../ledger/hold.ts";
import {
  affordableInput,
  affordableOutput,
  costBound,
  highestPrices,
  type ModelTerms,
} from "../pricing/price.ts";
import type { ModelRequest } from "./format.ts";

/** What an answer may cost at most, and how long it may get for that. */
export interface CallQuote extends Quote {
  /** Output tokens for each choice: sent upstream as the caller's bound. */
  cap: number;
  /** The balance pays for less than was asked: not where a limit does, which no money lifts. */
  cappedByBalance: boolean;
  /** What the user had before. */
  balance: Amount;
}

/** The prompt's tokens: bounded by its bytes, and counted only once that bound cannot be paid. */
export interface PromptSize {
  bound: number;
  counted: number | null;
  /** Known of it where counting stopped because that could not be paid. */
  atLeast: number;
}

/** An answer this long is worth having at once, rather than waiting for more money to come free. */
const worthHavingTokens = 1_024;

/** How long the answer may be if money is no object: the caller, the model, the project. */
export function wantedTokens(request: ModelRequest, terms: ModelTerms): number {
  return Math.min(request.maxTokens ?? Infinity, terms.maxOutputTokens);
}

/** The fewest output tokens that an answer is started for. */
export function minimumTokens(request: ModelRequest, terms: ModelTerms): number {
  const whole = request.structured || request.asksReasoning || terms.reasoning;
  const minimum = whole ? terms.minStructuredOutputTokens : terms.minOutputTokens;
  return Math.min(minimum, wantedTokens(request, terms));
}

/**
 * What a chat holds of `available`: the prompt's bound, the output cap for every choice and the
 * request fee. `countTo` asks for the prompt to be counted first; null is too little for an answer.
 */
export function quoteCall(
  request: ModelRequest,
  terms: ModelTerms,
  prompt: PromptSize,
): (funds: AvailableFunds) => CallQuote | CountFirst | null {
  const wanted = wantedTokens(request, terms);
  const minimum = minimumTokens(request, terms);
  const input = prompt.counted ?? prompt.bound;
  const capFor = (spendable: Amount, tokens = input) =>
    affordableOutput(terms.price, { spendable, input: tokens, choices: request.choices });
  const inputFor = (spendable: Amount) =>
    affordableInput(terms.price, { spendable, output: minimum, choices: request.choices });
  const holdFor = (cap: number) => costBound(terms.price, { input, output: cap * request.choices });
  return ({ available, balanceOnly, withoutOwnHolds, balance }) => {
    const affordable = capFor(available);
    if (affordable >= wanted) {
      return {
        amount: holdFor(wanted),
        cap: wanted,
        cappedByBalance: false,
        reducedByHolds: false,
        balance,
      };
    }
    if (prompt.counted === null && highestPrices(terms.price).input > 0n) {
      // Where not even an answer to what is known of the prompt can be paid, counting is no use.
      return capFor(withoutOwnHolds, prompt.atLeast) < minimum
        ? null
        : { countTo: inputFor(balance) };
    }
    if (affordable < minimum) return null;
    const best = Math.min(wanted, capFor(withoutOwnHolds), worthHavingTokens);
    const squeezed = affordable < best;
    const clamped = capFor(balanceOnly) < wanted;
    return {
      amount: holdFor(affordable),
      cap: affordable,
      cappedByBalance: clamped,
      reducedByHolds: squeezed,
      balance,
    };
  };
}
