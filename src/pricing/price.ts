import { ownMember } from "../base/json.ts";
import {
  inputTokensOf,
  outputTokensOf,
  type TokenCause,
  type TokenClass,
  tokenClassRows,
  type TokenCounts,
} from "../base/token_classes.ts";
import { type Amount, divideRoundingUp, toAmount, unit, zero } from "../base/money.ts";
import { memoizeByObject } from "../base/memoize_by_object.ts";
import {
  levelAt,
  type PriceLevel,
  type PriceTable,
  rateOf,
  type SearchContextSize,
  type TierPrices,
} from "./price_level.ts";
import { unitBound, unitCost, unitParts, type Units, type UsedUnits } from "./units.ts";

/** The price of a model for users, at one time. */
export interface Price {
  table: PriceTable;
  /** The project's fee for a response that produced output. */
  requestFee: Amount;
  /** The least that a response with output costs. */
  minimum: Amount;
  /** 100 % and the markup, in 1e-9 of a percent. */
  percent: bigint;
  /**
   * 100 % and the markup on a cost that the provider states, in 1e-9 of a percent; null where the
   * list's prices are used.
   */
  statedPercent: bigint | null;
}

/** The usage of a response, as far as it has a price. */
export interface Used {
  counts: TokenCounts;
  /** Calls of tools at the provider, by the tool's name. */
  toolCalls: Readonly<Record<string, number>>;
  searchContext: SearchContextSize | null;
  /** Images, characters and seconds; absent where the request asks for none. */
  units?: UsedUnits | null;
  producedOutput: boolean;
  /** The tier that served it. Null and unknown ones have the standard prices. */
  serviceTier: string | null;
  /** The cost that the provider states, in 1e-12 currency units. */
  statedCost: bigint | null;
  /** The part of its price that a response from the project's cache costs; absent for others. */
  costFactor?: Amount;
}

/** A use of tokens alone, at the standard tier. */
export function useOfTokens(counts: TokenCounts): Used {
  return {
    counts,
    toolCalls: {},
    searchContext: null,
    producedOutput: outputTokensOf(counts) > 0,
    serviceTier: null,
    statedCost: null,
  };
}

/** 100 %, in 1e-9 of a percent. */
export const wholePercent = 100n * unit;
const million = 1_000_000n;
/** A token's price times a factor is in these parts of a currency unit's 1e-9. */
const tokenParts = million * unit;
/** With the percentage, in these. */
const allParts = tokenParts * wholePercent;
const statedParts = 1_000n;

/** The prices of a tier; the standard ones where the tier is null or has none of its own. */
function pricesOf({ standard, serviceTiers }: PriceTable, tier: string | null): TierPrices {
  return (tier === null ? undefined : serviceTiers.get(tier)) ?? standard;
}

/** The prices that apply to a response. */
export function levelOfUse({ table }: Price, { counts, serviceTier }: Used): PriceLevel {
  const prices = pricesOf(table, serviceTier);
  return prices.tiers.length === 0 ? prices.base : levelAt(prices, inputTokensOf(counts));
}

/**
 * The price of a million tokens of a class in a response with these tokens, at the standard tier.
 */
export function tokenRate(
  { table: { standard } }: Pick<Price, "table">,
  name: TokenClass,
  counts: TokenCounts,
): bigint {
  return rateOf(levelAt(standard, inputTokensOf(counts)).rates, name);
}

/** Whether tokens cost nothing, and images, characters or minutes have a price. */
export function pricesOnlyUnits({ table: { standard, serviceTiers } }: Price): boolean {
  const { base, tiers } = standard;
  return base.units !== null && base.charges.length === 0 && tiers.length === 0 &&
    serviceTiers.size === 0;
}

/** A cost as a fraction, before it is rounded. */
interface ExactCost {
  parts: bigint;
  /** How many of the parts are 1e-9 currency units. */
  divisor: bigint;
}

/**
 * The cost of a response, rounded up once. Request prices and fees are due when it produced output;
 * tool calls always. A factor applies to all of it, fees and the minimum too.
 */
export function costOfUse(price: Price, used: Used): Amount {
  const { requestFee, minimum, percent, statedPercent } = price;
  const { producedOutput, statedCost, costFactor } = used;
  const { parts, divisor } = statedPercent !== null && statedCost !== null
    ? { parts: statedCost * statedPercent, divisor: statedParts * wholePercent }
    : listCost(levelOfUse(price, used), percent, used);
  if (costFactor === undefined) {
    const cost = divideRoundingUp(parts, divisor);
    if (!producedOutput) return cost;
    const whole = toAmount(cost + requestFee);
    return whole < minimum ? minimum : whole;
  }
  const due = producedOutput ? parts + requestFee * divisor : parts;
  const least = producedOutput ? minimum * divisor : 0n;
  return divideRoundingUp((due < least ? least : due) * costFactor, divisor * unit);
}

/** The stated cost, in 1e-12 currency units, that makes a response cost so much before fees. */
export function statedForCost(statedPercent: bigint, cost: Amount): bigint {
  return statedPercent > 0n
    ? cost * statedParts * wholePercent / statedPercent
    : cost * statedParts;
}

/** The cost of a response by the prices of a level, before the project's fee. */
function listCost(level: PriceLevel, percent: bigint, used: Used): ExactCost {
  const { counts, producedOutput } = used;
  let tokens = 0n;
  for (const { name, rate } of level.charges) {
    const count = counts[name];
    if (count > 0) tokens += BigInt(count) * rate;
  }
  const fixed = (producedOutput ? requestPrice(level, used.searchContext) : 0n) +
    toolPrice(level, used.toolCalls);
  const parts = tokens * level.factor + fixed * tokenParts;
  const { units } = used;
  if (!level.units || !units) return { parts: parts * percent, divisor: allParts };
  // A minute divides by 60, which the other parts do not.
  const all = parts * unitParts + unitCost(level.units, units) * tokenParts;
  return { parts: all * percent, divisor: allParts * unitParts };
}

/** The price of a request; without a known size of its search context, that of the smallest. */
export function requestPrice(
  { request, requestBySearchContext }: PriceLevel,
  searchContext: SearchContextSize | null,
): bigint {
  return requestBySearchContext?.[searchContext ?? "low"] ?? request;
}

function toolPrice({ toolCalls }: PriceLevel, calls: Used["toolCalls"]): bigint {
  let sum = 0n;
  for (const name in calls) sum += BigInt(calls[name] ?? 0) * (ownMember(toolCalls, name) ?? 0n);
  return sum;
}

/** A call before its response: its price, and what it can cause. */
export interface PricedCall {
  price: Price;
  /** Service tiers that may serve it, besides the standard one. */
  serviceTiers: readonly string[];
  causes: readonly TokenCause[];
  /** Tool calls to hold money for. */
  toolCalls: number;
  /** The most images, characters and seconds; absent where it asks for none. */
  units?: Units | null;
  /** Null where the request leaves it to the provider. */
  searchContext: SearchContextSize | null;
}

/** The most that tokens of each side can cost, in `tokenParts`, and what is due besides. */
interface Bound {
  input: bigint;
  output: bigint;
  fixed: bigint;
}

/** The highest prices that a call with at most so many input tokens can reach. */
function boundOf(call: PricedCall, inputTokens: number): Bound {
  const { price: { table }, serviceTiers } = call;
  const { standard } = table;
  if (serviceTiers.length === 0 && standard.tiers.length === 0) {
    return boundOfLevel(call, standard.base);
  }
  const bound: Bound = { input: 0n, output: 0n, fixed: 0n };
  for (const name of [null, ...serviceTiers]) {
    const { base, tiers } = pricesOf(table, name);
    const reachable = tiers.filter(({ above }) => inputTokens > above);
    for (const level of [base, ...reachable.map(({ level }) => level)]) {
      const { input, output, fixed } = boundOfLevel(call, level);
      if (input > bound.input) bound.input = input;
      if (output > bound.output) bound.output = output;
      if (fixed > bound.fixed) bound.fixed = fixed;
    }
  }
  return bound;
}

function boundOfLevel(
  { causes, toolCalls, searchContext, units }: PricedCall,
  level: PriceLevel,
): Bound {
  const { input, output } = highestRates(level, causes);
  const { request, requestBySearchContext: bySize } = level;
  const sizes = searchContext === null && bySize ? Object.values(bySize) : [];
  const requests = [bySize ? requestPrice(level, searchContext) : request, ...sizes];
  let fixed = requests.reduce((most, one) => (one > most ? one : most), 0n);
  if (toolCalls > 0) {
    const tools = Object.values(level.toolCalls);
    fixed += BigInt(toolCalls) * tools.reduce((most, one) => (one > most ? one : most), zero);
  }
  if (units && level.units) fixed += unitBound(level.units, units);
  return { input, output, fixed };
}

const highestOf = memoizeByObject((_level: PriceLevel) => new Map<string, Omit<Bound, "fixed">>());

/** The highest rate of each side among the classes that a request can cause, with the factor. */
function highestRates(level: PriceLevel, causes: readonly TokenCause[]): Omit<Bound, "fixed"> {
  const known = highestOf(level);
  const key = causes.length === 0 ? "" : causes.join();
  const found = known.get(key);
  if (found) return found;
  const highest = { input: 0n, output: 0n };
  for (const { name, side, causedBy } of tokenClassRows) {
    if (causedBy !== undefined && !causes.some((cause) => cause === causedBy)) continue;
    const rate = rateOf(level.rates, name) * level.factor;
    if (rate > highest[side]) highest[side] = rate;
  }
  known.set(key, highest);
  return highest;
}

/** Whether input tokens of the call cost anything. */
export function isInputPriced(call: PricedCall): boolean {
  return boundOf(call, Infinity).input > 0n;
}

/** The most that so many tokens can cost in a call, with fees, tool calls and the minimum. */
export function costBound(
  call: PricedCall,
  { input, output }: { input: number; output: number },
): Amount {
  const { requestFee, minimum, percent } = call.price;
  const bound = boundOf(call, input);
  const sum = BigInt(input) * bound.input + BigInt(output) * bound.output +
    bound.fixed * tokenParts;
  const whole = toAmount(divideRoundingUp(sum * percent, allParts) + requestFee);
  return whole < minimum ? minimum : whole;
}

/**
 * The most output tokens, for each of `choices`, that `spendable` pays for after `input` tokens.
 * Negative when the input cannot be paid; Infinity when output is free.
 */
export function affordableOutput(
  call: PricedCall,
  { spendable, input, choices }: { spendable: Amount; input: number; choices: number },
): number {
  const bound = boundOf(call, input);
  const other = BigInt(input) * bound.input + bound.fixed * tokenParts;
  return tokensFor(call.price, { spendable, other, rate: bound.output * BigInt(choices) });
}

/**
 * The most input tokens that `spendable` pays for beside `output` tokens for each of `choices`.
 * Negative when that output cannot be paid.
 */
export function affordableInput(
  call: PricedCall,
  { spendable, output, choices }: { spendable: Amount; output: number; choices: number },
): number {
  const starts = inputSteps(call);
  let most = -1;
  for (const [at, above] of starts.entries()) {
    const upTo = starts[at + 1] ?? Infinity;
    const bound = boundOf(call, above + 1);
    const other = BigInt(output * choices) * bound.output + bound.fixed * tokenParts;
    const tokens = tokensFor(call.price, { spendable, other, rate: bound.input });
    // What is paid for by the prices of a shorter prompt counts only up to where they end.
    if (tokens > above || (at === 0 && tokens >= 0)) most = Math.max(most, Math.min(tokens, upTo));
  }
  return most;
}

/** Numbers of input tokens above which another price can apply; the first is -1. */
function inputSteps({ price: { table }, serviceTiers }: PricedCall): number[] {
  const starts = [null, ...serviceTiers].flatMap((name) =>
    pricesOf(table, name).tiers.map(({ above }) => above)
  );
  return [...new Set([-1, ...starts])].sort((a, b) => a - b);
}

/** How many tokens at a rate can be paid beside the fee and the cost of `other` parts. */
function tokensFor(
  { requestFee, minimum, percent }: Price,
  { spendable, other, rate }: { spendable: Amount; other: bigint; rate: bigint },
): number {
  const budget = (spendable - requestFee) * allParts - other * percent;
  if (spendable < requestFee || spendable < minimum || budget < 0n) return -1;
  return rate * percent === 0n ? Infinity : Number(budget / (rate * percent));
}
