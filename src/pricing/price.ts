import {
  type Amount,
  divideRoundingUp,
  formatAmount,
  fromDecimal,
  toAmount,
  unit,
} from "../base/money.ts";
import {
  inputTokensOf,
  mapOptionalPriceFields,
  outputTokensOf,
  pricedClasses,
  type PriceField,
  readTokens,
  type TokenCounts,
} from "../base/token_classes.ts";
import { memoizeByObject } from "../base/memoize_by_object.ts";
import type { EntryUsage } from "../ledger/entry.ts";
import type { ModelPrice } from "../projects/price_schema.ts";
import type { Project } from "../projects/schema.ts";
import { cataloguePrice, type TokenPrices } from "./catalogue.ts";

/** A model's price. Tiers in order; a tier applies to an input of more than `above` tokens. */
export interface Price {
  tiers: readonly { above: number; rates: TokenPrices }[];
  requestFee: Amount;
  /** 100 % and the markup, in 1e-9 of a percent. */
  percent: bigint;
}

/** The price and the bounds of calls to one model. */
export interface ModelTerms {
  price: Price;
  maxOutputTokens: number;
  minOutputTokens: number;
  minStructuredOutputTokens: number;
  mediaTokens: Record<string, number>;
  reasoning: boolean;
  onAbort: "estimate" | "drain" | null;
  displayName: string | null;
  description: string | null;
}

const million = 1_000_000n;
const wholePercent = 100n * unit;
const termsPerProjectMax = 1_000;

// There is one project object for each version of its row, so cached terms end with that version.
const termsPer = memoizeByObject((_project: Project) => new Map<string, ModelTerms | null>());

/**
 * The terms of a model: the project's own price for exactly this name, else for "*", both final;
 * else the catalogue's price with the markup, where the project uses it. Null: not served.
 */
export function modelTerms(project: Project, model: string): ModelTerms | null {
  const terms = termsPer(project);
  const found = terms.get(model);
  if (found !== undefined) return found;
  const made = findTerms(project, model);
  if (terms.size >= termsPerProjectMax) terms.clear();
  terms.set(model, made);
  return made;
}

function findTerms(project: Project, model: string): ModelTerms | null {
  const { pricing } = project;
  const requestFee = fromDecimal(pricing.requestFee);
  const own = Object.hasOwn(pricing.models, model) ? pricing.models[model] : pricing.models["*"];
  if (own) {
    const price = {
      tiers: [{ above: -1, rates: ratesOf(own) }],
      requestFee,
      percent: wholePercent,
    };
    return bounds(project, model, price, own);
  }
  if (!pricing.catalogue || project.currency !== "usd") return null;
  const tiers = cataloguePrice(model);
  if (!tiers) return null;
  const percent = wholePercent + fromDecimal(pricing.markupPercent);
  return bounds(project, model, { tiers, requestFee, percent }, null);
}

/** The prices that a project sets; those that it leaves out stay absent. */
function ratesOf(own: ModelPrice): TokenPrices {
  const prices: TokenPrices = { input: fromDecimal(own.input), output: fromDecimal(own.output) };
  for (const [field, text] of Object.entries(mapOptionalPriceFields(({ price }) => own[price]))) {
    if (text !== undefined) Object.assign(prices, { [field]: fromDecimal(text) });
  }
  return prices;
}

/** Models known to reason in tokens that they do not show. */
const reasoningNames = /(^|\/)(o\d|gpt-5)|reasoner|deepseek-r\d|thinking/i;

function bounds(project: Project, model: string, price: Price, own: ModelPrice | null): ModelTerms {
  return {
    price,
    maxOutputTokens: Math.min(own?.maxOutputTokens ?? Infinity, project.maxOutputTokens),
    minOutputTokens: own?.minOutputTokens ?? 16,
    minStructuredOutputTokens: own?.minStructuredOutputTokens ?? 1_024,
    mediaTokens: own?.mediaTokens ?? {},
    reasoning: own?.reasoning ?? reasoningNames.test(model),
    onAbort: own?.onAbort ?? null,
    displayName: own?.displayName ?? null,
    description: own?.description ?? null,
  };
}

/** The prices that apply to this many input tokens. */
export function pricesForInput(price: Price, inputTokens: number): TokenPrices {
  const tier = price.tiers.findLast(({ above }) => inputTokens > above) ?? price.tiers[0];
  if (!tier) throw new Error("a price has at least one tier");
  return tier.rates;
}

/** The highest price of an input and of an output token, over all tiers: used for holds. */
export const highestPrices = memoizeByObject((price: Price): Record<TokenSide, bigint> => {
  const highest = { input: 0n, output: 0n };
  for (const { rates } of price.tiers) {
    for (const row of chargedClasses) {
      const rate = rateFor(rates, row.fields);
      if (rate > highest[row.side]) highest[row.side] = rate;
    }
  }
  return highest;
});

type TokenSide = "input" | "output";

/** The classes that are charged, each with its price fields: the first one present applies. */
const chargedClasses = pricedClasses.map(({ name, side, price, priceElse }) => ({
  name,
  side,
  fields: fieldChain(price, priceElse),
}));

function fieldChain(price: PriceField, priceElse: string | undefined): PriceField[] {
  const other = pricedClasses.find((row) => row.price === priceElse);
  return other ? [price, ...fieldChain(other.price, other.priceElse)] : [price];
}

function rateFor(rates: TokenPrices, fields: readonly PriceField[]): bigint {
  for (const field of fields) {
    const rate = rates[field];
    if (rate !== undefined) return rate;
  }
  throw new Error(`a price has none of ${fields.join(", ")}`);
}

/** The cost of tokens at given prices: multiplied first, divided once, rounded up once. */
export function tokenCost(
  price: Price,
  rates: TokenPrices,
  counts: Partial<TokenCounts>,
): Amount {
  let sum = 0n;
  for (const { name, fields } of chargedClasses) {
    const tokens = counts[name] ?? 0;
    if (tokens > 0) sum += BigInt(tokens) * rateFor(rates, fields);
  }
  return divideRoundingUp(sum * price.percent, million * wholePercent);
}

/** The most that so many tokens of any class can cost, the request fee included. */
export function costBound(
  price: Price,
  { input, output }: { input: number; output: number },
): Amount {
  const highest = highestPrices(price);
  const sum = BigInt(input) * highest.input + BigInt(output) * highest.output;
  const tokens = divideRoundingUp(sum * price.percent, million * wholePercent);
  return toAmount(tokens + price.requestFee);
}

/** The cost of a call. The request fee is due when it produced output. */
export function usageCost(price: Price, usage: TokenCounts, producedOutput: boolean): Amount {
  const tokens = tokenCost(price, pricesForInput(price, inputTokensOf(usage)), usage);
  return producedOutput ? toAmount(tokens + price.requestFee) : tokens;
}

/**
 * The most output tokens, for each of `choices`, that `spendable` pays for after `input` tokens at
 * the highest prices. Negative when the input cannot be paid; Infinity when output is free.
 */
export function affordableOutput(
  price: Price,
  { spendable, input, choices }: { spendable: Amount; input: number; choices: number },
): number {
  const { input: inputRate, output: outputRate } = highestPrices(price);
  const other = BigInt(input) * inputRate;
  return tokensFor(price, { spendable, other, rate: outputRate * BigInt(choices) });
}

/**
 * The most input tokens that `spendable` pays for beside `output` tokens for each of `choices`.
 * Negative when that output cannot be paid.
 */
export function affordableInput(
  price: Price,
  { spendable, output, choices }: { spendable: Amount; output: number; choices: number },
): number {
  const { input: inputRate, output: outputRate } = highestPrices(price);
  const other = BigInt(output * choices) * outputRate;
  return tokensFor(price, { spendable, other, rate: inputRate });
}

/** How many tokens at a price can be paid beside the fee and the cost of `other` tokens. */
function tokensFor(
  { requestFee, percent }: Price,
  { spendable, other, rate }: { spendable: Amount; other: bigint; rate: bigint },
): number {
  const budget = (spendable - requestFee) * million * wholePercent - other * percent;
  if (spendable < requestFee || budget < 0n) return -1;
  return rate * percent === 0n ? Infinity : Number(budget / (rate * percent));
}

/** The price as an entry stores it: decimal strings per million tokens. */
export function describePrice(price: Price, inputTokens: number): Readonly<Record<string, string>> {
  return describer(price)(pricesForInput(price, inputTokens));
}

const describedFields = pricedClasses.filter(({ active }) => active)
  .map(({ price, priceElse }) => ({ price, fields: fieldChain(price, priceElse) }));

const describer = memoizeByObject(({ percent, requestFee }: Price) =>
  memoizeByObject((rates: TokenPrices): Record<string, string> => ({
    ...Object.fromEntries(
      describedFields.map(({ price, fields }) => [price, formatAmount(rateFor(rates, fields))]),
    ),
    markupPercent: formatAmount(percent - wholePercent),
    requestFee: formatAmount(requestFee),
  }))
);

/**
 * The possible costs of a call, recomputed from its entry. An entry records output only as tokens:
 * a provider may have reported none for text that was produced.
 */
export function possibleCosts({ price, ...used }: EntryUsage): Amount[] {
  const part = (name: string) => fromDecimal(price[name] ?? "0");
  const rates: TokenPrices = { input: part("input"), output: part("output") };
  for (const { price: field } of pricedClasses) {
    if (price[field] !== undefined) rates[field] = part(field);
  }
  const described: Price = {
    tiers: [{ above: -1, rates }],
    requestFee: part("requestFee"),
    percent: wholePercent + part("markupPercent"),
  };
  const usage = readTokens(used);
  const whetherProduced = outputTokensOf(usage) > 0 ? [true] : [true, false];
  return whetherProduced.map((produced) => usageCost(described, usage, produced));
}

/** The price of a million tokens with the markup, at the lowest tier, as decimal strings. */
export function priceForPeople(price: Price): { input: string; output: string } {
  const { input, output } = pricesForInput(price, 0);
  const marked = (rate: bigint) =>
    formatAmount(divideRoundingUp(rate * price.percent, wholePercent));
  return { input: marked(input), output: marked(output) };
}
