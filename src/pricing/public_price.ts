import { type Amount, divideRoundingUp, formatAmount, toAmount, unit } from "../base/money.ts";
import { type PriceField, tokenClassRows } from "../base/token_classes.ts";
import { type Price, wholePercent } from "./price.ts";
import { rateOf } from "./price_level.ts";
import type { UnitPrices } from "./units.ts";

/**
 * The price for users, with the markup, for a short prompt at the standard tier: decimal strings.
 */
export interface PublicPrice {
  /** For a million tokens; classes without a price of their own are absent. */
  perMillion: { input: string; output: string } & { [Field in PriceField]?: string };
  /** For each response with output, the project's fee included. */
  request: string;
  /** For each call of a tool at the provider, by the tool's name. */
  toolCalls: Record<string, string>;
  /** For what is counted by the unit; null where nothing is. */
  units: PublicUnits | null;
}

/** Prices of units; absent where there are none. */
interface PublicUnits {
  images?: Record<string, string>;
  /** For a million. */
  characters?: string;
  /** For a minute. */
  audioMinutes?: string;
}

/** Returns what users pay for a model. */
export function publicPrice({ table, percent, requestFee }: Price): PublicPrice {
  const { rates, factor, request, requestBySearchContext, toolCalls, units } = table.standard.base;
  const marked = (amount: bigint): Amount => divideRoundingUp(amount * percent, wholePercent);
  const tokens = (name: string) => {
    const rate = rateOf(rates, name) * factor;
    return formatAmount(divideRoundingUp(rate * percent, unit * wholePercent));
  };
  const perMillion: PublicPrice["perMillion"] = {
    input: tokens("uncachedInput"),
    output: tokens("output"),
  };
  for (const { name, price } of tokenClassRows) {
    if (rates[price] !== undefined) perMillion[price] = tokens(name);
  }
  const due = marked(requestBySearchContext?.low ?? request);
  return {
    perMillion,
    request: formatAmount(toAmount(due + requestFee)),
    toolCalls: Object.fromEntries(
      Object.entries(toolCalls).map(([name, amount]) => [name, formatAmount(marked(amount))]),
    ),
    units: units && publicUnits(units, (amount) => formatAmount(marked(amount))),
  };
}

function publicUnits(
  { images, characters, audioMinutes }: UnitPrices,
  shown: (amount: bigint) => string,
): PublicUnits {
  return {
    ...(images === null ? {} : {
      images: Object.fromEntries(
        Object.entries(images).map(([name, amount]) => [name, shown(amount)]),
      ),
    }),
    ...(characters === null ? {} : { characters: shown(characters) }),
    ...(audioMinutes === null ? {} : { audioMinutes: shown(audioMinutes) }),
  };
}
