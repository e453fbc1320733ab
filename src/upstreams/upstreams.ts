import { BoundedMap } from "../base/bounded_map.ts";
import { ownMember } from "../base/json.ts";
import { Secret } from "../base/secret.ts";
import type { Deps } from "../deps.ts";
import { withVersion } from "../config/config.ts";
import { requestByFetch } from "../http/by_fetch.ts";
import { readInstanceUpstreams, usualUpstream } from "../projects/instance_upstreams.ts";
import { fieldsAt, type Provider, providerNamed } from "../projects/providers.ts";
import type { Project } from "../projects/schema.ts";
import { type ModelRoute, type UpstreamSettings, urlOf } from "../projects/upstream_schema.ts";
import { projectKey } from "../store/keys.ts";
import type { Secrets } from "../store/secrets.ts";
import { LearnedFacts } from "./learned.ts";
import { isDated } from "./address.ts";
import { createModelLists, type ModelLists } from "./model_lists.ts";
import { respondInSandbox, sandboxModel } from "./sandbox.ts";
import type {
  CatchAll,
  FindTargets,
  FindUpstreamNamed,
  Target,
  Targets,
  Upstream,
} from "./upstream.ts";

/** The most upstreams of projects of which anything is remembered. */
const upstreamsMax = 10_000;

/** The upstreams of projects, and what they serve. */
export interface Upstreams {
  findUpstreamNamed: FindUpstreamNamed;
  findTargets: FindTargets;
  findCatchAll(project: Project): Promise<readonly CatchAll[]>;
  /** The names of the project's routes, and those of the instance's that it uses. */
  routeNames(project: Project): readonly string[];
  modelLists: ModelLists;
}

/**
 * Creates the upstreams of projects: a project's own, else that of the environment; in development
 * also the simulated model.
 */
export function createUpstreams(deps: Deps, secrets: Secrets): Upstreams {
  const { config } = deps;
  const modelLists = createModelLists(deps);
  const instance = readInstanceUpstreams(config);
  const facts = new BoundedMap<string, LearnedFacts>(upstreamsMax);
  const factsOf = (owner: string, { name, url }: Pick<Upstream, "name" | "url">) =>
    facts.getOrMake(`${owner} ${name} ${url}`, () => new LearnedFacts(deps.clock));

  function open(
    name: string,
    settings: UpstreamSettings,
    { apiKey, owner }: Pick<Upstream, "apiKey" | "owner">,
  ): Upstream {
    const prepared = providerNamed(settings.provider);
    const url = baseUrlOf(settings, prepared);
    const { headers = {}, modelsPath = unnamed.modelsPath } = prepared ?? {};
    return {
      name,
      url,
      apiKey,
      onAbort: settings.onAbort ?? null,
      maxTokensField: settings.maxTokensField ?? null,
      formats: settings.formats ?? formatsOf(settings, prepared),
      fields: fieldsAt(url, prepared),
      keyHeader: prepared?.keyHeader ?? "authorization",
      headers: { ...headers, ...lowerCased(settings.headers ?? {}) },
      modelsPath,
      apiVersion: settings.apiVersion ?? null,
      timeouts: settings.timeouts ?? {},
      learned: factsOf(owner, { name, url }),
      owner,
      request: deps.requestUpstream,
    };
  }

  // There are new settings for each version of the project's row, so what is opened ends with it.
  const opened = new WeakMap<UpstreamSettings, Promise<Upstream>>();
  function openedAs({ id }: Project, name: string, settings: UpstreamSettings): Promise<Upstream> {
    const known = opened.get(settings) ?? openOfProject(id, name, settings);
    opened.set(settings, known);
    return known;
  }
  async function openOfProject(projectId: string, name: string, settings: UpstreamSettings) {
    const { apiKey: sealed } = settings;
    const key = sealed && new Secret(await secrets.open(sealed, projectKey(projectId)));
    return open(name, settings, { apiKey: key, owner: projectId });
  }
  const ofInstance = new Map(
    Object.entries(instance.upstreams).map(([name, settings]) => {
      const apiKey = ownMember(instance.apiKeys, name) ?? null;
      const upstream = open(name, settings, { apiKey, owner: "operator" });
      return [name, { upstream, settings }];
    }),
  );

  const fromEnvironment: Upstream | null = config.upstream && {
    ...unnamed,
    ...config.upstream,
    fields: fieldsAt(config.upstream.url),
    learned: new LearnedFacts(deps.clock),
    request: deps.requestUpstream,
  };
  const sandbox: Upstream = {
    ...unnamed,
    formats: ["chat"],
    url: "http://sandbox.invalid/v1",
    apiKey: null,
    learned: new LearnedFacts(deps.clock),
    request: requestByFetch((url, init) => respondInSandbox(new Request(url, init), deps)),
  };

  const seen = new BoundedMap<string, Upstream>(upstreamsMax);
  /** An upstream of the instance with what was learned about it for this project alone. */
  function asSeenBy({ id }: Project, upstream: Upstream): Upstream {
    const { name, url } = upstream;
    const learned = () => factsOf(id, upstream);
    return seen.getOrMake(`${id} ${name} ${url}`, () => ({ ...upstream, learned: learned() }));
  }

  function usualUpstreamOf(project: Project, model: string): Promise<Upstream> | Upstream | null {
    if (config.dev && model === sandboxModel) return sandbox;
    const { upstream } = project;
    if (upstream) return openedAs(project, usualUpstream, upstream);
    return fromEnvironment && asSeenBy(project, fromEnvironment);
  }

  /** A project's upstream of this name, else the instance's; `default` is the usual one. */
  async function findNamed(project: Project, name: string, model: string): Promise<Named | null> {
    const { upstreams } = project;
    const settings = Object.hasOwn(upstreams, name) ? upstreams[name] : undefined;
    if (settings) return { upstream: await openedAs(project, name, settings), settings };
    const found = ofInstance.get(name);
    if (found) return { ...found, upstream: asSeenBy(project, found.upstream) };
    if (name !== usualUpstream) return null;
    const upstream = await usualUpstreamOf(project, model);
    return upstream && { upstream, settings: null };
  }

  /** The route of a model: the project's, else the instance's where the project has no upstream. */
  function routeFor({ routes, upstream }: Project, model: string): ModelRoute | null {
    if (config.dev && model === sandboxModel) return null;
    return routeIn(routes, model) ?? (upstream ? null : routeIn(instance.routes, model));
  }

  function routeNames({ routes, upstream }: Project): readonly string[] {
    return [...Object.keys(routes), ...(upstream ? [] : Object.keys(instance.routes))];
  }

  /** Whether an upstream serves a model. It is taken to serve all where nothing is known. */
  function serves({ upstream, settings }: Named, model: string): boolean {
    const { models } = settings ?? {};
    if (models === undefined) return true;
    if (models === "upstream") {
      const listed = modelLists.known(upstream);
      return !listed || listed.size === 0 || listed.has(model);
    }
    return models.some((name) =>
      name.endsWith("*") ? model.startsWith(name.slice(0, -1)) : name === model
    );
  }

  const findCatchAll: Upstreams["findCatchAll"] = async (project) => {
    const route = routeFor(project, "*");
    if (!route) {
      const upstream = await usualUpstreamOf(project, "*");
      return upstream ? [{ upstream, place: null, serves: () => true, names: [] }] : [];
    }
    const found: CatchAll[] = [];
    for (const { upstream: name, model } of route.targets) {
      const named = model === undefined ? await findNamed(project, name, "*") : null;
      if (!named) continue;
      const { upstream, settings: place } = named;
      const names = namedModels(place);
      found.push({ upstream, place, serves: (asked) => serves(named, asked), names });
    }
    return found;
  };

  const findUpstreamNamed: FindUpstreamNamed = async (project, name) => {
    const named = await findNamed(project, name ?? usualUpstream, "");
    return named && named.upstream;
  };

  const findTargets: FindTargets = (project, model) => {
    const route = routeFor(project, model);
    if (route) return findRouted(project, model, route);
    const upstream = usualUpstreamOf(project, model);
    return upstream instanceof Promise
      ? upstream.then((opened) => asTargets(opened, model))
      : asTargets(upstream, model);
  };

  async function findRouted(
    project: Project,
    model: string,
    route: ModelRoute,
  ): Promise<Targets> {
    const targets: Target[] = [];
    for (const { upstream: name, model: there = model, weight } of route.targets) {
      const named = await findNamed(project, name, there);
      if (!named || !serves(named, there)) continue;
      targets.push({ upstream: named.upstream, model: there, weight, place: named.settings });
    }
    return { route, targets };
  }
  return { findUpstreamNamed, findTargets, findCatchAll, routeNames, modelLists };
}

const unnamed = {
  name: usualUpstream,
  onAbort: null,
  maxTokensField: null,
  formats: null,
  fields: {},
  keyHeader: "authorization",
  headers: {},
  modelsPath: "/models",
  apiVersion: null,
  timeouts: {},
  owner: "operator",
} as const;

/**
 * The base URL of an upstream's endpoints. A URL without a path gets the path that its provider
 * documents.
 */
function baseUrlOf(settings: UpstreamSettings, prepared: Provider | null): string {
  const url = urlOf(settings).replace(/\/+$/, "");
  if (settings.provider === "azure") {
    const root = url.replace(/\/openai(\/v1)?$/, "");
    return `${root}/openai${isDated(settings.apiVersion) ? "" : "/v1"}`;
  }
  const documented = prepared?.url && new URL(prepared.url).pathname;
  return documented && new URL(url).pathname === "/" ? url + documented : withVersion(url);
}

/**
 * The formats that an upstream is known to speak; null where that is not known. Of Azure's dated
 * APIs only later ones have responses, so that each format is tried once.
 */
function formatsOf({ apiVersion }: UpstreamSettings, prepared: Provider | null) {
  return isDated(apiVersion) ? null : prepared?.formats ?? null;
}

/** The models that an upstream's settings name in full. */
function namedModels(settings: UpstreamSettings | null): readonly string[] {
  const { models } = settings ?? {};
  return Array.isArray(models) ? models.filter((name) => !name.endsWith("*")) : [];
}

function lowerCased(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
  );
}

function asTargets(upstream: Upstream | null, model: string): Targets {
  return { route: null, targets: upstream ? [{ upstream, model, weight: 1, place: null }] : [] };
}

/** The route of a model among these: its own, else the one for `*`; null where there is none. */
function routeIn(routes: Readonly<Record<string, ModelRoute>>, model: string): ModelRoute | null {
  return (Object.hasOwn(routes, model) ? routes[model] : routes["*"]) ?? null;
}

/** An upstream with its settings; null for the usual one. */
interface Named {
  upstream: Upstream;
  settings: UpstreamSettings | null;
}
