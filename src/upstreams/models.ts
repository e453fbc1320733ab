import { BoundedMap } from "../base/bounded_map.ts";
import type { Deps } from "../deps.ts";
import type { Project } from "../projects/schema.ts";
import { type PublicPrice, publicPrice } from "../pricing/public_price.ts";
import type { ModelTerms, PricedPlace, Prices } from "../pricing/terms.ts";
import type { Modalities, ModelList } from "./model_lists.ts";
import type { ModelView } from "./model_schema.ts";
import type { CatchAll } from "./upstream.ts";
import type { Upstreams } from "./upstreams.ts";

/** The models that a project can serve. */
export interface Models {
  /**
   * Models with a price: the project's own and those that routes are for, in the order of the
   * settings, then those of its upstreams, by name. The same object as long as nothing changes.
   */
  list(project: Project): Promise<readonly ModelView[]>;
  /** Finds one model of the list; null when the project has no price for it. */
  find(project: Project, model: string): Promise<ModelView | null>;
}

interface ModelsDeps {
  deps: Pick<Deps, "clock">;
  prices: Prices;
  upstreams: Pick<Upstreams, "findTargets" | "findCatchAll" | "routeNames" | "modelLists">;
}

interface ListedTerms {
  id: string;
  terms: ModelTerms;
  modalities: Modalities | null;
}

/** The objects that a list was made of. The same objects make the same list. */
interface Sources {
  /** The minute of the list: prices can change by the time of day. */
  minute: number;
  catalogueVersion: number;
  /** The upstreams for models without a route, and the lists of these upstreams. */
  all: readonly CatchAll[];
  lists: readonly ModelList[];
}

/**
 * Lists models with a price of their own, and those with a route. Where the project has a price for
 * "*" or uses the catalogue, also the models of its upstreams that get a price by it.
 */
export function createModels({ deps: { clock }, prices, upstreams }: ModelsDeps): Models {
  const { findTargets, findCatchAll, routeNames, modelLists } = upstreams;
  // There is one project object for each version of its row. A list is large, and soon made.
  const kept = new BoundedMap<Project, Kept>(keptMax);

  async function routedTerms(project: Project, asked: string): Promise<ModelTerms | null> {
    const { route, targets } = await findTargets(project, asked);
    const at = clock.now();
    for (const { model, place } of targets) {
      const terms = prices.targetTerms(project, { asked, model, place, at });
      if (terms) return terms;
    }
    const hasUpstream = route !== null || targets.length > 0;
    return hasUpstream ? null : prices.terms(project, asked, at);
  }

  /** The upstreams whose own models can have a price. */
  async function catchAllOf(project: Project): Promise<readonly CatchAll[]> {
    const { models, catalogue } = project.pricing;
    return models["*"] || catalogue ? await findCatchAll(project) : [];
  }

  async function sourcesOf(project: Project): Promise<Sources> {
    const all = await catchAllOf(project);
    const lists = await Promise.all(all.map(({ upstream }) => modelLists.read(upstream)));
    const minute = Math.floor(clock.now() / 60_000);
    return { minute, catalogueVersion: prices.catalogueVersion, all, lists };
  }

  async function readTerms(project: Project, sources: Sources): Promise<ListedTerms[]> {
    const named = new Set([...Object.keys(project.pricing.models), ...routeNames(project)]);
    named.delete("*");
    const offered = offeredBy(sources);
    const listed: ListedTerms[] = [];
    for (const id of named) {
      const terms = await routedTerms(project, id);
      if (terms) listed.push({ id, terms, modalities: offered.get(id)?.modalities ?? null });
    }
    const at = clock.now();
    for (const id of [...offered.keys()].sort()) {
      if (named.has(id)) continue;
      const { place = null, modalities = null } = offered.get(id) ?? {};
      const terms = prices.targetTerms(project, { asked: id, model: id, place, at });
      if (terms) listed.push({ id, terms, modalities });
    }
    return listed;
  }

  const viewOf = (project: Project, listed: ListedTerms) =>
    viewModel(project, { ...listed, catalogueDate: prices.catalogueDate });

  return {
    async list(project) {
      const of = await sourcesOf(project);
      const before = kept.get(project);
      if (before && isSame(before.of, of)) return before.views;
      const listed = await readTerms(project, of);
      const views = listed.map((one) => viewOf(project, one));
      kept.set(project, { of, views });
      return views;
    },
    async find(project, id) {
      const terms = id === "*" ? null : await routedTerms(project, id);
      if (!terms) return null;
      const all = await catchAllOf(project);
      const known = all.map(({ upstream }) => modelLists.known(upstream)?.get(id));
      const modalities = known.find((model) => model?.modalities)?.modalities ?? null;
      return viewOf(project, { id, terms, modalities });
    },
  };
}

/** The most lists that are kept, and the most models of upstreams on one list. */
const keptMax = 32;
const offeredMax = 10_000;

/** A project's list, and the objects that it was made of. */
interface Kept {
  of: Sources;
  views: readonly ModelView[];
}

function isSame(one: Sources, other: Sources): boolean {
  return one.minute === other.minute && one.catalogueVersion === other.catalogueVersion &&
    one.lists.length === other.lists.length &&
    one.lists.every((list, index) => list === other.lists[index]);
}

/** The description of a model by its upstream. */
interface Offered {
  place: PricedPlace | null;
  modalities: Modalities | null;
}

/** The models of upstreams, by name: those that they list, and those that their settings name. */
function offeredBy({ all, lists }: Sources): Map<string, Offered> {
  const offered = new Map<string, Offered>();
  const offer = (id: string, one: Offered) => {
    if (offered.size < offeredMax && !offered.has(id)) offered.set(id, one);
  };
  for (const [index, { place, serves, names }] of all.entries()) {
    for (const { id, modalities } of lists[index]?.values() ?? []) {
      if (serves(id)) offer(id, { place, modalities });
    }
    for (const id of names) offer(id, { place, modalities: null });
  }
  return offered;
}

function viewModel(
  project: Project,
  { id, terms, modalities, catalogueDate }: ListedTerms & { catalogueDate: string },
): ModelView {
  const { description } = terms;
  return {
    id,
    object: "model",
    created: Math.floor(Date.parse(project.createdAt) / 1000),
    owned_by: id.includes("/") ? id.split("/", 1)[0] ?? project.name : project.name,
    name: id,
    display_name: terms.displayName ?? id,
    ...(description ? { description } : {}),
    ...(modalities
      ? {
        architecture: {
          input_modalities: [...modalities.input],
          output_modalities: [...modalities.output],
        },
      }
      : {}),
    pricing: { ...viewPricing(publicPrice(terms.price)), currency: project.currency },
    ...(terms.fromCatalogue ? { catalogue_date: catalogueDate } : {}),
  };
}

/** Conventional names of prices, which are for one token. */
const perTokenNames = {
  prompt: "input",
  completion: "output",
  input_cache_read: "cachedInput",
  input_cache_write: "cacheWrite",
  internal_reasoning: "reasoningOutput",
  audio: "audioInput",
} as const;

function viewPricing({ perMillion, request, toolCalls, units }: PublicPrice) {
  const perToken = Object.entries(perTokenNames).flatMap(([name, field]) => {
    const price = perMillion[field];
    return price === undefined ? [] : [[name, aMillionth(price)] as const];
  });
  return {
    prompt: aMillionth(perMillion.input),
    completion: aMillionth(perMillion.output),
    ...Object.fromEntries(perToken),
    request,
    ...(toolCalls.web_search === undefined ? {} : { web_search: toolCalls.web_search }),
    per_million: perMillion,
    ...(Object.keys(toolCalls).length === 0 ? {} : { tool_calls: toolCalls }),
    ...(units?.images ? { images: units.images } : {}),
    ...(units?.characters ? { million_characters: units.characters } : {}),
    ...(units?.audioMinutes ? { audio_minute: units.audioMinutes } : {}),
  };
}

/** A millionth of a decimal, exactly: the point moves by six digits. */
export function aMillionth(decimal: string): string {
  const [whole = "0", fraction = ""] = decimal.split(".");
  const digits = whole.padStart(7, "0");
  const rest = (digits.slice(-6) + fraction).replace(/0+$/, "");
  const start = digits.slice(0, -6).replace(/^0+(?=\d)/, "");
  return rest === "" ? start : `${start}.${rest}`;
}
