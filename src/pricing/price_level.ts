import {
  type PriceField,
  type RequiredPriceField,
  type TokenClass,
  tokenClassRows,
} from "../base/token_classes.ts";
import { type Amount, fromDecimal, unit, zero } from "../base/money.ts";
import type { ListPrice } from "../projects/price_schema.ts";
import { type UnitPrices, unitPricesOf } from "./units.ts";
import { isWithin, parseTimeWindow, type TimeWindow } from "./time_window.ts";

/**
 * Prices by field, in 1e-9 currency units per million tokens. A class whose field is absent costs
 * the price that its row of the table names instead.
 */
type TokenPrices =
  & Record<RequiredPriceField, bigint>
  & { [Field in Exclude<PriceField, RequiredPriceField>]?: bigint };

/** The size of a search's context, by which some models have a price for each request. */
export type SearchContextSize = "low" | "medium" | "high";

/** Prices that apply to requests of one length of prompt, one service tier and one time. */
export interface PriceLevel {
  rates: TokenPrices;
  /** The rate of each class that is charged. Of a class within another one: the difference. */
  charges: readonly { name: TokenClass; rate: bigint }[];
  /** Multiplies every token price; `unit` is one. */
  factor: bigint;
  request: Amount;
  requestBySearchContext: Readonly<Record<SearchContextSize, Amount>> | null;
  /** For each call of a tool, by its name. */
  toolCalls: Readonly<Record<string, Amount>>;
  /** Prices of images, characters and minutes; null where the price has none. */
  units: UnitPrices | null;
}

/** The prices of one service tier, by the length of the prompt. */
export interface TierPrices {
  base: PriceLevel;
  /** In order; each is for requests of more than `above` input tokens. */
  tiers: readonly { above: number; level: PriceLevel }[];
}

/** A model's prices at one time. */
export interface PriceTable {
  standard: TierPrices;
  serviceTiers: ReadonlyMap<string, TierPrices>;
}

/** A model's prices, before the time of a request chooses among them. */
export interface TimedPrices {
  always: PriceTable;
  windows: readonly { window: TimeWindow; table: PriceTable }[];
}

type Tier = NonNullable<ListPrice["tiers"]>[number];
/** Prices that replace others, as a tier, a service tier or a time window has them. */
type Replacement = Omit<Tier, "above"> & { factor?: string | undefined };

/**
 * Compiles a price of a price list. Where several conditions hold, the tier of the prompt's length
 * replaces the base prices, the service tier replaces both, and the time window all of them.
 * Factors multiply.
 */
export function compilePrices(list: ListPrice): TimedPrices {
  return {
    always: tableOf(list, null),
    windows: (list.timeWindows ?? []).map((window) => ({
      window: parseTimeWindow(window),
      table: tableOf(list, window),
    })),
  };
}

/** The prices at a time, in milliseconds since 1970. */
export function tableAt({ always, windows }: TimedPrices, at: number): PriceTable {
  return windows.find(({ window }) => isWithin(window, at))?.table ?? always;
}

/** The prices of a request with so many input tokens. */
export function levelAt({ base, tiers }: TierPrices, inputTokens: number): PriceLevel {
  if (tiers.length === 0) return base;
  return tiers.findLast(({ above }) => inputTokens > above)?.level ?? base;
}

type Layer = Replacement & { tiers?: readonly Tier[] | undefined };

function tableOf(list: ListPrice, window: Layer | null): PriceTable {
  const last = window ? [window] : [];
  const layersOf = (tier: Layer | null): Layer[] => [list, ...(tier ? [tier] : []), ...last];
  const serviceTiers = Object.entries(list.serviceTiers ?? {})
    .map(([name, tier]) => [name, tierPrices(list, layersOf(tier))] as const);
  return { standard: tierPrices(list, layersOf(null)), serviceTiers: new Map(serviceTiers) };
}

/** The prices of layers that replace each other, by the length of the prompt. */
function tierPrices(list: ListPrice, layers: readonly Layer[]): TierPrices {
  const starts = new Set(layers.flatMap(({ tiers = [] }) => tiers.map(({ above }) => above)));
  const levelFor = (inputTokens: number) =>
    levelOf(
      list,
      layers.flatMap((layer) => {
        const tier = layer.tiers?.findLast(({ above }) => inputTokens > above);
        return tier ? [layer, tier] : [layer];
      }),
    );
  return {
    base: levelFor(0),
    tiers: [...starts].sort((a, b) => a - b)
      .map((above) => ({ above, level: levelFor(above + 1) })),
  };
}

function levelOf(list: ListPrice, layers: readonly Replacement[]): PriceLevel {
  const rates: Partial<TokenPrices> = {};
  let request: Amount = zero;
  let factor = unit;
  let bySearchContext = list.requestBySearchContext ?? null;
  const toolCalls: Record<string, Amount> = {};
  for (const layer of layers) {
    for (const { price } of tokenClassRows) {
      const text = layer[price];
      if (text !== undefined) rates[price] = fromDecimal(text);
    }
    if (layer.request !== undefined) {
      request = fromDecimal(layer.request);
      if (layer !== list) bySearchContext = null;
    }
    for (const [name, text] of Object.entries(layer.toolCalls ?? {})) {
      toolCalls[name] = fromDecimal(text);
    }
    if (layer.factor !== undefined) factor = factor * fromDecimal(layer.factor) / unit;
  }
  const whole = { input: 0n, output: 0n, ...rates };
  return {
    rates: whole,
    charges: chargesOf(whole),
    factor,
    request,
    requestBySearchContext: bySearchContext && {
      low: fromDecimal(bySearchContext.low),
      medium: fromDecimal(bySearchContext.medium),
      high: fromDecimal(bySearchContext.high),
    },
    toolCalls,
    units: unitPricesOf(list),
  };
}

function chargesOf(rates: TokenPrices): PriceLevel["charges"] {
  return tokenClassRows.map(({ name, within }) => {
    const outer = within === undefined ? 0n : rateOf(rates, within);
    return { name, rate: rateOf(rates, name) - outer };
  }).filter(({ rate }) => rate !== 0n);
}

/** The rate of a class: of the first price field that is present, down its row's chain. */
export function rateOf(rates: TokenPrices, name: string): bigint {
  let row = tokenClassRows.find((row) => row.name === name);
  while (row) {
    const rate = rates[row.price];
    if (rate !== undefined) return rate;
    const { priceElse } = row;
    row = tokenClassRows.find(({ price }) => price === priceElse);
  }
  throw new Error(`no price applies to ${name}`);
}
