import { isObject, type Json, parseJson } from "../base/json.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { modelListBytesMax } from "../base/limits.ts";
import type { Deps } from "../deps.ts";
import { inflated } from "../http/inflate.ts";
import { endpointUrl, upstreamHeaders } from "./address.ts";
import { readUpstreamBody } from "./client.ts";
import type { Upstream } from "./upstreams.ts";

/** A model in an upstream's own list. */
export interface ListedModel {
  id: string;
  /** Kinds of input and output, where the list says; else null. */
  modalities: Modalities | null;
}

/** Kinds of input and output, such as `text` and `image`. */
export interface Modalities {
  input: readonly string[];
  output: readonly string[];
}

/** What upstreams say they serve, by `GET /models`. Kept for a minute, in this process. */
export interface ModelLists {
  /** The list; the last known one, or an empty one, where the upstream does not answer in time. */
  read(upstream: Upstream): Promise<readonly ListedModel[]>;
  /**
   * The last known list, read again in the background where it is old; null where none is known.
   */
  known(upstream: Upstream): readonly ListedModel[] | null;
}

interface Known {
  readAt: number;
  models: Promise<readonly ListedModel[]>;
  last: readonly ListedModel[] | null;
}

const upstreamListMs = 5_000;
const listLifetimeMs = 60_000;
const listsMax = 1_000;

/** Creates an empty memory of lists. */
export function createModelLists(deps: Pick<Deps, "clock" | "log">): ModelLists {
  const lists = new Map<string, Known>();

  function refreshed(upstream: Upstream): Known {
    // A list depends on the key that asked for it.
    const asker = `${upstream.url} ${upstream.apiKey?.reveal() ?? ""}`;
    const known = lists.get(asker);
    if (known && deps.clock.elapsed() - known.readAt < listLifetimeMs) return known;
    const last = known?.last ?? null;
    const reading = fetchModels(deps, upstream).then((models) => made.last = models);
    const models = reading.catch((error) => {
      deps.log("warn", "upstream_models_failed", { url: upstream.url, error: String(error) });
      return made.last ?? [];
    });
    const made: Known = { readAt: deps.clock.elapsed(), models, last };
    if (lists.size >= listsMax) lists.clear();
    lists.set(asker, made);
    return made;
  }

  return {
    read: (upstream) => refreshed(upstream).models,
    known: (upstream) => refreshed(upstream).last,
  };
}

async function fetchModels(
  { clock }: Pick<Deps, "clock">,
  upstream: Upstream,
): Promise<readonly ListedModel[]> {
  const stop = new AbortController();
  const cancel = clock.after(upstreamListMs, () => stop.abort());
  try {
    const { signal } = stop;
    const headers = {
      ...upstreamHeaders(upstream),
      accept: "application/json",
      "accept-encoding": "identity",
    };
    const url = endpointUrl(upstream, "/models", null);
    const sent = await upstream.request({ url, method: "GET", headers, signal, body: null });
    const response = inflated(sent, signal);
    const bytes = await readUpstreamBody(response.body, modelListBytesMax, signal);
    if (response.status !== 200) throw new Error(`upstream status ${response.status}`);
    const body = parseJson(decodeUtf8(bytes) ?? "");
    const data = isObject(body) && Array.isArray(body.data) ? body.data : [];
    return data.flatMap((model) =>
      isObject(model) && typeof model.id === "string"
        ? [{ id: model.id, modalities: modalitiesIn(model.architecture) }]
        : []
    );
  } finally {
    cancel();
  }
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
