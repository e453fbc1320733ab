import { BoundedMap } from "../base/bounded_map.ts";
import { fromDecimal, zero } from "../base/money.ts";
import { memoizeByObject } from "../base/memoize_by_object.ts";
import type { ModelPrice } from "../projects/price_schema.ts";
import type { Project } from "../projects/schema.ts";
import { providerNamed } from "../projects/providers.ts";
import type { UpstreamSettings } from "../projects/upstream_schema.ts";
import { type Catalogue, providerOfUrl } from "./catalogue.ts";
import { type Price, wholePercent } from "./price.ts";
import { type OutputBounds, outputBoundsOf } from "./output_limits.ts";
import { compilePrices, type PriceTable, tableAt, type TimedPrices } from "./price_level.ts";

/** The price and the bounds of calls to one model, at one time. */
export interface ModelTerms extends OutputBounds {
  price: Price;
  /** The price list's price without markup and fees; null where the catalogue has none. */
  listPrice: Price | null;
  /** Whether the price is the catalogue's, not the project's own. */
  fromCatalogue: boolean;
  /**
   * Whether this is the project's price of the name that was asked for. It holds whoever answers.
   */
  isOfAskedName?: true;
  /** The most output tokens that the owner allows; infinite where they set no limit. */
  maxOutputTokens: number;
  minOutputTokens: number;
  minStructuredOutputTokens: number;
  mediaTokens: Record<string, number>;
  /** The model's context window, in tokens; absent where the catalogue does not know it. */
  contextWindow?: number | null;
  /** Tool calls that a hold covers; null where the project does not say. */
  maxToolCalls: number | null;
  /** Whether it reasons in hidden tokens; null where the project does not say. */
  reasoning: boolean | null;
  onAbort: "estimate" | "drain" | null;
  displayName: string | null;
  description: string | null;
}

/** An upstream that a route leads to, as far as the catalogue's prices depend on it. */
export type PricedPlace = Pick<UpstreamSettings, "url" | "provider">;

/** Finds what models cost. Times are in milliseconds since 1970. */
export interface Prices {
  /**
   * The terms of a model: the project's own price for exactly this name, else for "*", both final;
   * else the catalogue's price with the markup, where the project uses it. Null: not served.
   */
  terms(project: Project, model: string, at: number): ModelTerms | null;
  /**
   * The terms of a model that a route leads to: the project's own price for exactly the name that
   * was asked for, whoever answers; else those of the model there. Null: it has no price.
   */
  targetTerms(project: Project, target: PricedTarget): ModelTerms | null;
  /**
   * The terms by which a response is charged that another model has given than was requested: that
   * model's, where it has a price of the same kind, the project's own or the catalogue's; else the
   * requested one's. Its `listPrice` is that of the model that answered, where that has one.
   */
  servedTerms(project: Project, call: ServedModel): ModelTerms;
  /** The models whose list price the catalogue has for the project's usual upstream, in order. */
  catalogueModels(project: Project): readonly string[];
  /** The day of the catalogue's newest prices. */
  readonly catalogueDate: string;
  /** Changes when the catalogue's prices do. */
  readonly catalogueVersion: number;
}

/** A model at an upstream, and the name by which it was asked for. */
interface PricedTarget {
  asked: string;
  model: string;
  /** Null for the project's usual upstream. */
  place: PricedPlace | null;
  /** In milliseconds since 1970. */
  at: number;
}

/** A response's model, and the model that was requested. */
interface ServedModel {
  requested: string;
  served: string;
  terms: ModelTerms;
  /** Where it answered; null for the project's usual upstream. */
  place: PricedPlace | null;
  at: number;
}

const modelsPerProjectMax = 5_000;
const hourMs = 60 * 60 * 1000;

/** Where the terms of a model come from, before the time of a request chooses among its prices. */
interface TermsSource {
  prices: TimedPrices;
  own: ModelPrice | null;
  listPrices: TimedPrices | null;
  /** The terms where no time of day matters. */
  made: ModelTerms | null;
}

/** Prices of a catalogue and of projects. `upstreamUrl` is that of projects without their own. */
export function createPrices(catalogue: Catalogue, upstreamUrl: string | null): Prices {
  // There is one project object for each version of its row, so what is cached ends with it. The
  // catalogue's prices change by the day.
  const cacheOf = memoizeByObject((_project: Project) => ({
    version: -1,
    hour: -1,
    sources: new BoundedMap<string, TermsSource | null>(modelsPerProjectMax),
    lists: new BoundedMap<string, TimedPrices | null>(modelsPerProjectMax),
  }));
  const usualProvider = memoizeByObject(({ upstream }: Project) =>
    upstream ? providerAt(upstream) : upstreamUrl === null ? null : providerOfUrl(upstreamUrl)
  );
  const providerAt = memoizeByObject(catalogueProvider);
  const providerOf = (project: Project, place: PricedPlace | null) =>
    place ? providerAt(place) : usualProvider(project);

  function cachedAt(project: Project, at: number) {
    const cache = cacheOf(project);
    const hour = Math.floor(at / hourMs);
    if (cache.version === catalogue.version && cache.hour === hour) return cache;
    cache.sources.clear();
    cache.lists.clear();
    return Object.assign(cache, { version: catalogue.version, hour });
  }

  /** The catalogue's prices of a model; null where it has none, or the project another currency. */
  function listOf(
    project: Project,
    model: string,
    at: number,
    place: PricedPlace | null,
  ): TimedPrices | null {
    if (project.currency !== "usd") return null;
    const provider = providerOf(project, place);
    return cachedAt(project, at).lists.getOrMake(`${provider} ${model}`, () => {
      const price = catalogue.find(provider, model, at);
      return price && compilePrices(price);
    });
  }

  function sourceOf(
    project: Project,
    model: string,
    at: number,
    place: PricedPlace | null,
  ): TermsSource | null {
    const name = place ? `${providerOf(project, place)} ${model}` : model;
    return cachedAt(project, at).sources.getOrMake(name, () => {
      const { pricing } = project;
      const own = ownPrice(project, model) ?? pricing.models["*"] ?? null;
      const listPrices = listOf(project, model, at, place);
      const prices = own ? compilePrices(own) : pricing.catalogue ? listPrices : null;
      return prices && { prices, own, listPrices, made: null };
    });
  }

  function terms(
    project: Project,
    model: string,
    at: number,
    place: PricedPlace | null = null,
  ): ModelTerms | null {
    const source = sourceOf(project, model, at, place);
    if (!source) return null;
    if (source.made) return source.made;
    const { prices, listPrices, own } = source;
    const table = tableAt(prices, at);
    const list = listPrices && tableAt(listPrices, at);
    const known = knownOf(project, model, place);
    const made = { ...termsOf(project, own, { table, list }), ...known };
    const isTimed = prices.windows.length + (listPrices?.windows.length ?? 0) > 0;
    if (!isTimed) source.made = made;
    return made;
  }

  /** What is known of a model itself. */
  function knownOf(project: Project, model: string, place: PricedPlace | null) {
    const contextWindow = catalogue.contextWindow(providerOf(project, place), model);
    return { contextWindow, ...outputBoundsOf(model, contextWindow) };
  }

  return {
    terms,
    targetTerms(project, { asked, model, place, at }) {
      const isUsual = place === null && asked === model;
      if (isUsual || !ownPrice(project, asked)) return terms(project, model, at, place);
      const own = terms(project, asked, at, place);
      if (!own) return null;
      const list = asked === model ? null : listOf(project, model, at, place);
      const listPrice = asked === model ? own.listPrice : list && asListed(tableAt(list, at));
      return { ...own, listPrice, ...knownOf(project, model, place), isOfAskedName: true };
    },
    catalogueModels: (project) =>
      project.currency === "usd" ? catalogue.models(usualProvider(project)) : [],
    get catalogueDate() {
      return catalogue.date;
    },
    get catalogueVersion() {
      return catalogue.version;
    },
    servedTerms(project, { requested, served, terms: requestedTerms, place, at }) {
      if (served === requested) return requestedTerms;
      const { fromCatalogue, isOfAskedName } = requestedTerms;
      const hasOwn = ownPrice(project, served) !== null && !isOfAskedName;
      const found = hasOwn || fromCatalogue ? terms(project, served, at, place) : null;
      if (found) return found;
      const list = listOf(project, served, at, place);
      return list ? { ...requestedTerms, listPrice: asListed(tableAt(list, at)) } : requestedTerms;
    },
  };
}

/** The catalogue's id of an upstream's provider; null where it is not known. */
function catalogueProvider({ url, provider }: PricedPlace): string | null {
  const prepared = providerNamed(provider);
  if (prepared) return prepared.catalogue;
  return provider ?? (url === undefined ? null : providerOfUrl(url));
}

function ownPrice({ pricing: { models } }: Project, model: string): ModelPrice | null {
  return Object.hasOwn(models, model) ? models[model] ?? null : null;
}

function termsOf(
  project: Project,
  own: ModelPrice | null,
  { table, list }: { table: PriceTable; list: PriceTable | null },
): Omit<ModelTerms, keyof OutputBounds | "contextWindow"> {
  const { pricing } = project;
  const projectPercent = wholePercent + fromDecimal(pricing.markupPercent);
  const percent = own ? wholePercent + fromDecimal(own.markupPercent ?? "0") : projectPercent;
  // Providers state their costs in dollars.
  const isStated = project.currency === "usd" &&
    (own?.priceFrom ?? pricing.priceFrom) === "provider";
  const statedPercent = own?.markupPercent === undefined ? projectPercent : percent;
  return {
    price: {
      table,
      requestFee: fromDecimal(pricing.requestFee),
      minimum: fromDecimal(own?.minimum ?? "0"),
      percent,
      statedPercent: isStated ? statedPercent : null,
    },
    listPrice: list && asListed(list),
    fromCatalogue: own === null,
    maxOutputTokens: Math.min(
      own?.maxOutputTokens ?? Infinity,
      project.maxOutputTokens ?? Infinity,
    ),
    minOutputTokens: own?.minOutputTokens ?? 16,
    minStructuredOutputTokens: own?.minStructuredOutputTokens ?? 1_024,
    mediaTokens: own?.mediaTokens ?? {},
    maxToolCalls: own?.maxToolCalls ?? null,
    reasoning: own?.reasoning ?? null,
    onAbort: own?.onAbort ?? null,
    displayName: own?.displayName ?? null,
    description: own?.description ?? null,
  };
}

/** A price without markup and fees: what the provider asks. */
function asListed(table: PriceTable): Price {
  return {
    table,
    requestFee: zero,
    minimum: zero,
    percent: wholePercent,
    statedPercent: wholePercent,
  };
}
