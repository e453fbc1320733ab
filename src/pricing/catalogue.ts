import {
  findProvider,
  type MatchLogic,
  type ModelInfo,
  type Provider,
} from "@pydantic/genai-prices";
import type { ListPrice } from "../projects/price_schema.ts";
import { priceOn } from "./catalogue_entry.ts";

/** When the catalogue's package was published; prices may have changed since. */
export const packageDate = "2026-09-23";

/** The list prices of one provider, by the exact ids of its models. */
type ProviderPrices = ReadonlyMap<string, ListPrice>;

/** List prices of the providers, in US dollars. */
export interface Catalogue {
  /** The day of the newest prices in it. */
  readonly date: string;
  /** Changes when prices do. */
  readonly version: number;
  /**
   * The list price of a model at a time, in milliseconds since 1970. With a null provider, a
   * maker's own price of its model, or OpenRouter's of a `maker/model`. Null when the model is
   * unknown, has no price for input or output, or has prices that no report of usage covers: an
   * absent price is never free.
   */
  find(provider: string | null, model: string, at: number): ListPrice | null;
  /** The list price of a model at this very provider. */
  findOf(provider: string, model: string, at: number): ListPrice | null;
  /** The list price of a model at this very provider that came with Farebox. */
  packaged(provider: string, model: string, at: number): ListPrice | null;
  /** The refreshed prices, by provider. */
  readonly refreshed: ReadonlyMap<string, ProviderPrices>;
  /** The names of a provider's models, in order; with a null provider, those of their makers. */
  models(provider: string | null): readonly string[];
  /** The context window of a model, in tokens; null where the package does not state it. */
  contextWindow(provider: string | null, model: string): number | null;
  /** Puts refreshed prices, by provider, in front of the package's. */
  replace(prices: ReadonlyMap<string, ProviderPrices>, date: string): void;
}

/** Companies that serve their own models. A price of theirs holds where the provider is unknown. */
const makers = [
  ...["openai", "anthropic", "google", "x-ai", "deepseek", "mistral", "perplexity", "cohere"],
  ...["moonshotai", "minimax", "zai"],
];

/** The catalogue of the package `@pydantic/genai-prices`, without refreshed prices. */
export function createCatalogue(): Catalogue {
  let refreshed: ReadonlyMap<string, ProviderPrices> = new Map();
  let date = packageDate;
  let version = 0;
  const lists = new Map<string | null, readonly string[]>();

  function findAt(provider: string, model: string, at: number): ListPrice | null {
    return refreshed.get(provider)?.get(model) ?? packagePrice(provider, model, at);
  }

  return {
    get date() {
      return date;
    },
    get version() {
      return version;
    },
    find(provider, model, at) {
      for (const one of providersFor(provider, model)) {
        const price = findAt(one, model, at);
        if (price) return price;
      }
      return null;
    },
    findOf: findAt,
    packaged: packagePrice,
    get refreshed() {
      return refreshed;
    },
    models(provider) {
      const known = lists.get(provider);
      if (known) return known;
      const names = (provider === null ? makers : providersFor(provider, "")).flatMap((one) => [
        ...(refreshed.get(one)?.keys() ?? []),
        ...(packageProvider(one)?.models ?? []).map(({ id }) => id),
      ]);
      const list = [...new Set(names)].sort();
      lists.set(provider, list);
      return list;
    },
    contextWindow(provider, model) {
      for (const one of providersFor(provider, model)) {
        const window = packageModel(one, model)?.context_window;
        if (window !== undefined) return window;
      }
      return null;
    },
    replace(prices, day) {
      refreshed = prices;
      date = day;
      version++;
      lists.clear();
    },
  };
}

/** The provider behind an upstream's URL; null when it is none that the catalogue knows. */
export function providerOfUrl(url: string): string | null {
  return orNull(() => findProvider({ providerApiUrl: url }))?.id ?? null;
}

/** The providers whose lists may have a model, in order. */
function providersFor(provider: string | null, model: string): readonly string[] {
  if (provider === null) return model.includes("/") ? ["openrouter"] : makers;
  const others = packageProvider(provider)?.fallback_model_providers ?? [];
  return [provider, ...others];
}

function packageProvider(id: string): Provider | null {
  return orNull(() => findProvider({ providerId: id }));
}

function packageModel(provider: string, model: string): ModelInfo | null {
  const models = packageProvider(provider)?.models ?? [];
  return models.find(({ id }) => id === model) ??
    models.find((info) => isExactly(info.match, model)) ?? null;
}

function packagePrice(provider: string, model: string, at: number): ListPrice | null {
  const info = packageModel(provider, model);
  return info ? priceOn({ ...info, id: model }, at) : null;
}

/** Dates and versions of one model, which its provider's list price covers. */
const snapshot = /^([-@]\d{4}-?\d{2}-?\d{2}|-latest|-\d{3}|-preview(-\d{2}-(\d{2}|\d{4}))?)$/;

/**
 * Whether the package means this very model. Its patterns also match longer names that begin alike,
 * such as `…-fast` and `…:online`, which are other products.
 */
function isExactly(match: MatchLogic, model: string): boolean {
  if ("equals" in match) return match.equals === model;
  if ("or" in match) return match.or.some((one) => isExactly(one, model));
  if ("and" in match) return match.and.every((one) => isExactly(one, model));
  if ("regex" in match) return new RegExp(match.regex).test(model);
  if (!("starts_with" in match) || !model.startsWith(match.starts_with)) return false;
  const rest = model.slice(match.starts_with.length);
  return rest === "" || snapshot.test(rest);
}

/** The package throws for what it does not know. */
function orNull<T>(find: () => T | undefined): T | null {
  try {
    return find() ?? null;
  } catch {
    return null;
  }
}
