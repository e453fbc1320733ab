import type { ModelInfo, ModelPrice, TieredPrices } from "@pydantic/genai-prices";
import { formatAmount, parseAmount } from "../base/money.ts";
import type { PriceField } from "../base/token_classes.ts";
import type { ListPrice } from "../projects/price_schema.ts";

type Value = number | TieredPrices;

/** Prices of tokens per million, by the catalogue's names. */
const tokenPrices = new Map<string, PriceField>([
  ["input_mtok", "input"],
  ["cache_read_mtok", "cachedInput"],
  ["cache_write_mtok", "cacheWrite"],
  ["cache_write_1h_mtok", "cacheWriteHour"],
  ["input_audio_mtok", "audioInput"],
  ["cache_audio_read_mtok", "cachedAudioInput"],
  ["input_image_mtok", "imageInput"],
  ["cache_image_read_mtok", "cachedImageInput"],
  ["output_citation_mtok", "citation"],
  ["output_mtok", "output"],
  ["output_audio_mtok", "audioOutput"],
  ["output_image_mtok", "imageOutput"],
  ["output_reasoning_mtok", "reasoningOutput"],
]);
/** Prices per thousand calls. */
const toolPrices = new Map([
  ["web_searches_kcount", "web_search"],
  ["storage_searches_kcount", "file_search"],
]);
const requestPrice = "requests_kcount";

/** These models search for each response, at a fee that their provider does not report. */
const searches = /-search\b/;

/** A model's list price at a time, in milliseconds since 1970; prices of some hours as windows. */
export function priceOn(
  { id: model, prices }: Pick<ModelInfo, "id" | "prices">,
  at: number,
): ListPrice | null {
  if (!Array.isArray(prices)) return listPriceOf(prices, model);
  const day = new Date(at).toISOString().slice(0, 10);
  const daily = prices.filter(({ constraint }) =>
    constraint?.type !== "start_date" || constraint.start_date <= day
  );
  const base = daily.findLast(({ constraint }) => constraint?.type !== "time_of_date");
  const price = listPriceOf(base?.prices ?? {}, model);
  if (!price) return null;
  const timeWindows = daily.flatMap(({ constraint, prices }) => {
    if (constraint?.type !== "time_of_date") return [];
    const [from, to] = [constraint.start_time.slice(0, 5), constraint.end_time.slice(0, 5)];
    const window = listPriceOf(prices, model);
    return window ? [{ ...window, from, to }] : [];
  });
  return timeWindows.length > 0 ? { ...price, timeWindows } : price;
}

/** A price of the package as a list price; null where it does not cover all that is used. */
function listPriceOf(prices: ModelPrice, model: string): ListPrice | null {
  const given = Object.entries(prices).filter((entry): entry is [string, Value] =>
    entry[1] !== undefined
  );
  const isKnown = ([name]: [string, Value]) =>
    tokenPrices.has(name) || toolPrices.has(name) || name === requestPrice;
  if (!given.every(isKnown)) return null;
  if (searches.test(model) && prices[requestPrice] === undefined) return null;
  const { input, output, ...base } = pricesAbove(given, 0);
  if (input === undefined || output === undefined) return null;
  const starts = new Set(
    given.flatMap(([, value]) => typeof value === "object" ? value.tiers.map((t) => t.start) : []),
  );
  const tiers = [...starts].sort((a, b) => a - b)
    .map((above) => ({ above, ...pricesAbove(given, above + 1) }));
  return { input, output, ...base, ...(tiers.length > 0 ? { tiers } : {}) };
}

type LevelPrices = { [Field in PriceField]?: string } & Pick<ListPrice, "request" | "toolCalls">;

/** The prices of a request with so many input tokens. */
function pricesAbove(given: readonly [string, Value][], inputTokens: number): LevelPrices {
  const level: LevelPrices = {};
  const toolCalls: Record<string, string> = {};
  for (const [name, value] of given) {
    const price = typeof value === "number"
      ? value
      : value.tiers.findLast(({ start }) => inputTokens > start)?.price ?? value.base;
    const field = tokenPrices.get(name);
    const tool = toolPrices.get(name);
    if (field) level[field] = decimalOf(price);
    else if (tool) toolCalls[tool] = decimalOf(price / 1000);
    else level.request = decimalOf(price / 1000);
  }
  return Object.keys(toolCalls).length > 0 ? { ...level, toolCalls } : level;
}

/** The package has prices as doubles. Nine decimals are more than any provider's price has. */
function decimalOf(price: number): string {
  return formatAmount(parseAmount(price.toFixed(9)) ?? 0n);
}
