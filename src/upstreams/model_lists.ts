import { BoundedMap } from "../base/bounded_map.ts";
import { isObject, type Json, parseJson } from "../base/json.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { modelListBytesMax } from "../base/limits.ts";
import type { Deps } from "../deps.ts";
import { inflated } from "../http/inflate.ts";
import { endpointUrl, upstreamHeaders } from "./address.ts";
import { readUpstreamBody } from "./client.ts";
import type { Upstream } from "./upstream.ts";

/** A model in an upstream's own list. */
interface ListedModel {
  id: string;
  /** Kinds of input and output, where the list says; else null. */
  modalities: Modalities | null;
}

/** Kinds of input and output, such as `text` and `image`. */
export interface Modalities {
  input: readonly string[];
  output: readonly string[];
}

/** The models of an upstream by their ids: one object until its list has been read again. */
export type ModelList = ReadonlyMap<string, ListedModel>;

/** What upstreams say they serve, by their lists of models. Kept in this process. */
export interface ModelLists {
  /**
   * The list, read again where it is older than a minute. The last known one, or an empty one,
   * where the upstream does not answer within two seconds; the next call then waits for nothing.
   */
  read(upstream: Upstream): Promise<ModelList>;
  /**
   * The last known list, read again in the background where it is older than five minutes; null
   * where none is known.
   */
  known(upstream: Upstream): ModelList | null;
}

interface Known {
  /** When it was asked last; null before. */
  askedAt: number | null;
  last: ModelList | null;
  /** The reading under way; never rejects. */
  reading: Promise<void> | null;
  /** Whether the last reading failed, or took longer than a caller waits. */
  isSlow: boolean;
}

const readMs = 10_000;
const waitMs = 2_000;
const freshMs = 60_000;
const knownMs = 5 * 60_000;
const listsMax = 1_000;
const modelsMax = 10_000;
const idCharsMax = 256;
const noModels: ModelList = new Map();

/** Creates an empty memory of lists. */
export function createModelLists(deps: Pick<Deps, "clock" | "log">): ModelLists {
  const { clock, log } = deps;
  const lists = new BoundedMap<string, Known>(listsMax);

  function find(upstream: Upstream): Known {
    // A list depends on the key that asked for it.
    const asker = `${upstream.url} ${upstream.apiKey?.reveal() ?? ""}`;
    return lists.getOrMake(asker, () => ({
      askedAt: null,
      last: null,
      reading: null,
      isSlow: false,
    }));
  }

  /** Asks for the list, unless it was asked for within so many ms. */
  function refresh(known: Known, upstream: Upstream, ageMs: number): void {
    const now = clock.elapsed();
    if (known.reading || (known.askedAt !== null && now - known.askedAt < ageMs)) return;
    known.askedAt = now;
    known.reading = fetchModels(deps, upstream).then((models) => {
      known.last = models;
      known.isSlow = clock.elapsed() - now > waitMs;
    }, (error) => {
      known.isSlow = true;
      log("warn", "upstream_models_failed", { url: upstream.url, error: String(error) });
    }).finally(() => known.reading = null);
  }

  return {
    async read(upstream) {
      if (upstream.modelsPath === null) return noModels;
      const known = find(upstream);
      refresh(known, upstream, freshMs);
      if (known.reading && !known.isSlow) {
        const { promise: late, resolve } = Promise.withResolvers<void>();
        const cancel = clock.after(waitMs, () => {
          known.isSlow = true;
          resolve();
        });
        await Promise.race([known.reading, late]);
        cancel();
      }
      return known.last ?? noModels;
    },
    known(upstream) {
      if (upstream.modelsPath === null) return null;
      const known = find(upstream);
      refresh(known, upstream, knownMs);
      return known.last;
    },
  };
}

async function fetchModels(
  { clock }: Pick<Deps, "clock">,
  upstream: Upstream,
): Promise<ModelList> {
  const stop = new AbortController();
  const cancel = clock.after(readMs, () => stop.abort());
  try {
    const { signal } = stop;
    const headers = {
      ...upstreamHeaders(upstream),
      accept: "application/json",
      "accept-encoding": "identity",
    };
    const url = endpointUrl(upstream, { path: upstream.modelsPath ?? "" }, null);
    const { owner } = upstream;
    const request = { url, method: "GET", headers, signal, owner, body: null } as const;
    const sent = await upstream.request(request);
    const response = inflated(sent, signal);
    const bytes = await readUpstreamBody(response.body, modelListBytesMax, signal);
    if (response.status !== 200) throw new Error(`upstream status ${response.status}`);
    return modelsIn(parseJson(decodeUtf8(bytes) ?? ""));
  } finally {
    cancel();
  }
}

function modelsIn(body: Json): ModelList {
  // Together answers with the bare list.
  const data = isObject(body) ? body.data : body;
  const models = new Map<string, ListedModel>();
  for (const model of Array.isArray(data) ? data : []) {
    if (!isObject(model) || typeof model.id !== "string") continue;
    // Google lists `models/gemini-…`, and is called by the name alone.
    const id = model.id.replace(/^models\//, "");
    if (id === "" || id.length > idCharsMax) continue;
    if (models.size >= modelsMax) break;
    models.set(id, { id, modalities: modalitiesIn(model.architecture) });
  }
  return models;
}

/** As OpenRouter lists them: https://openrouter.ai/docs/api-reference/list-available-models */
function modalitiesIn(architecture: Json | undefined): Modalities | null {
  if (!isObject(architecture)) return null;
  const input = namesIn(architecture.input_modalities);
  const output = namesIn(architecture.output_modalities);
  return input && output ? { input, output } : null;
}

function namesIn(list: Json | undefined): string[] | null {
  if (!Array.isArray(list) || list.length > 16) return null;
  return list.filter((name): name is string =>
    typeof name === "string" && /^[a-z_]{1,32}$/.test(name)
  );
}
