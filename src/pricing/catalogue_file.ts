import { z } from "zod";
import type { Provider } from "@pydantic/genai-prices";
import { badRequest } from "../base/errors.ts";
import { modelName } from "../base/fields.ts";
import { isObject } from "../base/json.ts";
import { parseWith } from "../base/request.ts";
import { listPriceSchema } from "../projects/price_schema.ts";
import { packageDate } from "./catalogue.ts";
import { priceOn } from "./catalogue_entry.ts";

const date = z.iso.date();

/** Refreshed list prices: by provider, then by the exact id of the model. */
export const cataloguePricesSchema = z.strictObject({
  date: date.meta({
    description: "The day of these prices: not in the future, and not before `packageDate`.",
  }),
  prices: z.record(modelName, z.record(modelName, listPriceSchema)).meta({
    description: "By provider, such as `openai`, and then by the model's exact id.",
  }),
}).meta({ id: "CataloguePrices", description: "List prices in US dollars." });
/** Refreshed list prices. */
export type CataloguePrices = z.output<typeof cataloguePricesSchema>;

/**
 * Reads a price file: Farebox's own form, or as `providers` the list that the package
 * `@pydantic/genai-prices` publishes, of which those models are taken whose prices can be charged.
 * `at` is the time, in milliseconds since 1970, whose prices count. Throws 400 for anything else,
 * and for prices of a day that has not come, or that is before those of the package.
 */
export function readCatalogueFile(value: unknown, at: number): CataloguePrices {
  const providers: unknown = isObject(value) ? value.providers : undefined;
  if (!Array.isArray(providers)) {
    const prices = parseWith(cataloguePricesSchema, value);
    requireDay(prices.date, at);
    return prices;
  }
  const prices: CataloguePrices["prices"] = {};
  for (const provider of providers.filter(isProvider)) {
    const models = provider.models.flatMap((model) => {
      const price = priceOn(model, at);
      return price ? [[model.id, price] as const] : [];
    });
    if (models.length > 0) prices[provider.id] = Object.fromEntries(models);
  }
  const day = new Date(at).toISOString().slice(0, 10);
  return parseWith(cataloguePricesSchema, { date: day, prices });
}

const hourMs = 60 * 60 * 1000;

/** Throws 400 for a day in the future, in whatever time zone, or before the package's prices. */
function requireDay(date: string, at: number): void {
  const packageAt = Date.parse(packageDate);
  // A clock behind the package is wrong. It then decides only roughly what is in the future.
  const latest = at < packageAt ? packageAt + 366 * 24 * hourMs : at + 14 * hourMs;
  if (Date.parse(date) > latest) {
    throw badRequest("date", `'date' is ${date}, which is in the future.`);
  }
  if (date < packageDate) {
    const own = "the day of the prices that came with this version";
    throw badRequest("date", `'date' is ${date}, which is before ${packageDate}, ${own}.`);
  }
}

function isProvider(value: unknown): value is Provider {
  return isObject(value) && typeof value.id === "string" && Array.isArray(value.models) &&
    value.models.every((model) =>
      isObject(model) && typeof model.id === "string" &&
      (isObject(model.prices) || Array.isArray(model.prices))
    );
}
