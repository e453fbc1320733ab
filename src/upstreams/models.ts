import { isObject, parseJson } from "../base/json.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { modelListBytesMax } from "../base/limits.ts";
import type { Deps } from "../deps.ts";
import { inflated } from "../http/inflate.ts";
import type { Project } from "../projects/schema.ts";
import { type PublicPrice, publicPrice } from "../pricing/public_price.ts";
import type { ModelTerms, Prices } from "../pricing/terms.ts";
import { readUpstreamBody } from "./client.ts";
import type { FindUpstream, Upstream } from "./upstreams.ts";
import type { ModelView } from "./model_schema.ts";

/** The models that a project can serve. */
export interface Models {
  list(project: Project): Promise<ModelView[]>;
  /** Null when the project has no price for it. */
  find(project: Project, model: string): ModelView | null;
}

interface ModelsDeps {
  deps: Deps;
  findUpstream: FindUpstream;
  prices: Prices;
}

const upstreamListMs = 5_000;
const listLifetimeMs = 60_000;

/**
 * Lists models with a price of their own. Where the project has a price for "*" or uses the
 * catalogue, also the upstream's models that get a price by it.
 */
export function createModels(
  { deps, findUpstream, prices }: ModelsDeps,
): Models {
  const lists = new Map<string, { readAt: number; ids: Promise<string[]> }>();

  function upstreamModels(upstream: Upstream): Promise<string[]> {
    // A list depends on the key that asked for it.
    const asker = `${upstream.url} ${upstream.apiKey?.reveal() ?? ""}`;
    const known = lists.get(asker);
    if (known && deps.clock.elapsed() - known.readAt < listLifetimeMs) return known.ids;
    const ids = fetchModels(deps, upstream).catch((error) => {
      deps.log("warn", "upstream_models_failed", { url: upstream.url, error: String(error) });
      return [];
    });
    lists.set(asker, { readAt: deps.clock.elapsed(), ids });
    return ids;
  }

  return {
    async list(project) {
      const { models, catalogue } = project.pricing;
      const ids = new Set(Object.keys(models).filter((model) => model !== "*"));
      const upstream = models["*"] || catalogue ? await findUpstream(project, "*") : null;
      if (upstream) (await upstreamModels(upstream)).forEach((id) => ids.add(id));
      return [...ids].flatMap((id) => {
        const terms = prices.terms(project, id, deps.clock.now());
        return terms
          ? [viewModel(project, { id, terms, catalogueDate: prices.catalogueDate })]
          : [];
      });
    },
    find(project, model) {
      const terms = model === "*" ? null : prices.terms(project, model, deps.clock.now());
      return terms && viewModel(project, { id: model, terms, catalogueDate: prices.catalogueDate });
    },
  };
}

function viewModel(
  project: Project,
  { id, terms, catalogueDate }: { id: string; terms: ModelTerms; catalogueDate: string },
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

async function fetchModels({ clock }: Deps, upstream: Upstream): Promise<string[]> {
  const stop = new AbortController();
  const cancel = clock.after(upstreamListMs, () => stop.abort());
  try {
    const { signal } = stop;
    const headers: Record<string, string> = {
      accept: "application/json",
      "accept-encoding": "identity",
    };
    if (upstream.apiKey) headers.authorization = `Bearer ${upstream.apiKey.reveal()}`;
    const request = { url: `${upstream.url}/models`, method: "GET" as const, headers, signal };
    const response = inflated(await upstream.request({ ...request, body: null }), signal);
    const bytes = await readUpstreamBody(response.body, modelListBytesMax, signal);
    if (response.status !== 200) throw new Error(`upstream status ${response.status}`);
    const body = parseJson(decodeUtf8(bytes) ?? "");
    const data = isObject(body) && Array.isArray(body.data) ? body.data : [];
    return data.flatMap((model) =>
      isObject(model) && typeof model.id === "string" ? [model.id] : []
    );
  } finally {
    cancel();
  }
}
