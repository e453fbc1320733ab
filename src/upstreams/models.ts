import { memoizeByObject } from "../base/memoize_by_object.ts";
import type { Deps } from "../deps.ts";
import type { Project } from "../projects/schema.ts";
import { type PublicPrice, publicPrice } from "../pricing/public_price.ts";
import type { ModelTerms, PricedPlace, Prices } from "../pricing/terms.ts";
import type { Modalities } from "./model_lists.ts";
import type { ModelView } from "./model_schema.ts";
import type { Upstreams } from "./upstreams.ts";

/** The models that a project can serve. */
export interface Models {
  /** Those with a price: its own, those that routes are for, and those of its upstreams. */
  list(project: Project): Promise<readonly ModelView[]>;
  /** Null when the project has no price for it. */
  find(project: Project, model: string): Promise<ModelView | null>;
}

interface ModelsDeps {
  deps: Pick<Deps, "clock">;
  prices: Prices;
  upstreams: Pick<Upstreams, "findTargets" | "findCatchAll" | "modelLists">;
}

interface ListedTerms {
  id: string;
  terms: ModelTerms;
  modalities: Modalities | null;
}

/**
 * Lists models with a price of their own, and those with a route. Where the project has a price for
 * "*" or uses the catalogue, also the models of its upstreams that get a price by it.
 */
export function createModels({ deps: { clock }, prices, upstreams }: ModelsDeps): Models {
  const { findTargets, findCatchAll, modelLists } = upstreams;
  // There is one project object for each version of its row, so what is kept ends with it.
  const kept = memoizeByObject((_project: Project) => ({ of: "", views: noViews }));

  async function routedTerms(project: Project, asked: string): Promise<ModelTerms | null> {
    const { targets } = await findTargets(project, asked);
    const at = clock.now();
    for (const { model, place } of targets) {
      const terms = prices.targetTerms(project, { asked, model, place, at });
      if (terms) return terms;
    }
    return targets.length === 0 ? prices.terms(project, asked, at) : null;
  }

  /** The models of the upstreams that a model without a route of its own goes to. */
  async function upstreamModels(project: Project): Promise<Map<string, Offered>> {
    const { models, catalogue } = project.pricing;
    const offered = new Map<string, Offered>();
    if (!models["*"] && !catalogue) return offered;
    const all = await findCatchAll(project);
    const lists = await Promise.all(all.map(({ upstream }) => modelLists.read(upstream)));
    for (const [index, { place, serves }] of all.entries()) {
      for (const { id, modalities } of lists[index]?.values() ?? []) {
        if (!serves(id) || offered.has(id)) continue;
        offered.set(id, { place, modalities });
      }
    }
    return offered;
  }

  async function readTerms(project: Project): Promise<ListedTerms[]> {
    const { pricing: { models }, routes = {} } = project;
    const named = new Set([...Object.keys(models), ...Object.keys(routes)]);
    named.delete("*");
    const ids = [...named];
    const offered = await upstreamModels(project);
    const terms = await Promise.all(ids.map((id) => routedTerms(project, id)));
    const at = clock.now();
    const listed = ids.map((id, index) => ({
      id,
      terms: terms[index] ?? null,
      modalities: offered.get(id)?.modalities ?? null,
    }));
    for (const [id, { place, modalities }] of offered) {
      if (named.has(id)) continue;
      const its = prices.targetTerms(project, { asked: id, model: id, place, at });
      listed.push({ id, terms: its, modalities });
    }
    return listed.flatMap(({ terms, ...rest }) => terms ? [{ ...rest, terms }] : []);
  }

  const viewOf = (project: Project, listed: ListedTerms) =>
    viewModel(project, { ...listed, catalogueDate: prices.catalogueDate });

  return {
    async list(project) {
      const listed = await readTerms(project);
      const of = listed.map(({ id }) => id).join("\n");
      const before = kept(project);
      const isSame = before.of === of &&
        listed.every(({ terms }, index) => before.views[index]?.terms === terms);
      if (isSame) return before.views.map(({ view }) => view);
      const views = listed.map((one) => ({ terms: one.terms, view: viewOf(project, one) }));
      Object.assign(before, { of, views });
      return views.map(({ view }) => view);
    },
    async find(project, id) {
      const terms = id === "*" ? null : await routedTerms(project, id);
      return terms && viewOf(project, { id, terms, modalities: null });
    },
  };
}

/** What an upstream says of a model. */
interface Offered {
  place: PricedPlace | null;
  modalities: Modalities | null;
}

const noViews: readonly { terms: ModelTerms; view: ModelView }[] = [];

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
