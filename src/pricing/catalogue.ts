import type { PriceField, RequiredPriceField } from "../base/token_classes.ts";
import { calcPrice, type ModelPrice, type TieredPrices } from "@pydantic/genai-prices";
import { parseAmount } from "../base/money.ts";

/**
 * Prices by field, in 1e-9 currency units per million tokens. A class whose field is absent costs
 * the price that its row of the table names instead.
 */
export type TokenPrices =
  & Record<RequiredPriceField, bigint>
  & { [Field in Exclude<PriceField, RequiredPriceField>]?: bigint };

/** When the catalogue's package was published; prices may have changed since. */
export const catalogueDate = "2026-09-23";

/**
 * Prices in US dollars from `@pydantic/genai-prices`, all tiers. Null when the model is unknown,
 * has no price for input or output, or charges for more than text tokens: an absent price is never
 * free.
 */
export function cataloguePrice(model: string): { above: number; rates: TokenPrices }[] | null {
  const found = lookUp(model);
  if (!found || searches.test(model) || extras.some((extra) => extra in found)) return null;
  const starts = new Set([-1]);
  for (const price of Object.values(found)) {
    if (typeof price === "object") price.tiers.forEach(({ start }) => starts.add(start));
  }
  const tiers = [...starts].sort((a, b) => a - b).map((above) => ({
    above,
    rates: at(found, above),
  }));
  const whole = tiers.flatMap(({ above, rates }) => (rates ? [{ above, rates }] : []));
  return whole.length === tiers.length ? whole : null;
}

/** These models search for each response, at a fee that the catalogue often lacks. */
const searches = /-search\b/;
/** Charges that a response may cause without being asked for, as image output is. */
const extras = ["output_image_mtok", "requests_kcount"];

function lookUp(model: string): ModelPrice | null {
  try {
    return calcPrice({}, model)?.model_price ?? null;
  } catch {
    return null;
  }
}

/** The prices of one tier; null when input or output has no price in it. */
function at(prices: ModelPrice, above: number): TokenPrices | null {
  const input = rate(prices.input_mtok, above);
  const output = rate(prices.output_mtok, above);
  if (input === null || output === null) return null;
  return {
    input,
    output,
    cachedInput: rate(prices.cache_read_mtok, above) ?? input,
    cacheWrite: rate(prices.cache_write_mtok, above) ?? input,
  };
}

/** The package has prices as doubles. Nine decimals are more than any provider's price has. */
function rate(price: number | TieredPrices | undefined, above: number): bigint | null {
  if (price === undefined) return null;
  const value = typeof price === "object"
    ? price.tiers.findLast(({ start }) => start <= above)?.price ?? price.base
    : price;
  return parseAmount(value.toFixed(9));
}
