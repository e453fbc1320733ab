import { Secret } from "../base/secret.ts";
import type { Deps, RequestUpstream } from "../deps.ts";
import { withVersion } from "../config.ts";
import { requestByFetch } from "../http/by_fetch.ts";
import { providerNamed } from "../projects/providers.ts";
import type { Project } from "../projects/schema.ts";
import { type ModelRoute, type UpstreamSettings, urlOf } from "../projects/upstream_schema.ts";
import { projectKey } from "../store/keys.ts";
import type { Secrets } from "../store/secrets.ts";
import type { DialectSource, KnownDialects } from "./dialect.ts";
import { respondInSandbox, sandboxModel } from "./sandbox.ts";

/** A server of models, with its key and what is known about it. */
export interface Upstream extends DialectSource {
  /** Its name in the project's settings; `default` for the one that has none. */
  name: string;
  url: string;
  apiKey: Secret | null;
  onAbort: "estimate" | "drain" | null;
  /** The header that carries the key, in lower case. */
  keyHeader: "authorization" | "x-api-key" | "api-key";
  /** Headers of every request to it. */
  headers: Readonly<Record<string, string>>;
  /** Azure's: calls then go to the deployment of the model's name. */
  apiVersion: string | null;
  timeouts: NonNullable<UpstreamSettings["timeouts"]>;
  request: RequestUpstream;
}

/** A model of an upstream, which can answer a call. */
export interface Target {
  upstream: Upstream;
  /** The model's name there. */
  model: string;
  /** Of targets that are chosen by chance. */
  weight: number;
  /** What the catalogue's prices depend on; null for the project's usual upstream. */
  place: Pick<UpstreamSettings, "url" | "provider"> | null;
}

/** Where the calls of a model can go. */
export interface Targets {
  /** Null where no route leads to them: then there is one. */
  route: ModelRoute | null;
  targets: readonly Target[];
}

/** Finds the upstream of a project's calls that no route is for; null when none is set. */
export type FindUpstream = (project: Project, model: string) => Promise<Upstream | null>;

/** Finds an upstream by its name; the usual one for null. Null where there is none. */
export type FindUpstreamNamed = (
  project: Project,
  name: string | null,
) => Promise<Upstream | null>;

/** Finds where the calls of a model can go; none where no upstream is set. */
export type FindTargets = (project: Project, model: string) => Promise<Targets>;

/** Whether an upstream serves a model, by the names of its settings; without any it serves all. */
export function servesModel({ models }: Pick<UpstreamSettings, "models">, model: string): boolean {
  return !models ||
    models.some((name) =>
      name.endsWith("*") ? model.startsWith(name.slice(0, -1)) : name === model
    );
}

/**
 * The project's upstreams, else that of the environment; in development also the simulated model.
 */
export function createUpstreams(
  deps: Deps,
  secrets: Secrets,
): { findUpstream: FindUpstream; findTargets: FindTargets; findUpstreamNamed: FindUpstreamNamed } {
  const { config } = deps;
  const learned = new Map<string, KnownDialects>();

  function dialectsOf(url: string): KnownDialects {
    const known = learned.get(url) ?? new Map();
    learned.set(url, known);
    return known;
  }

  async function open(
    projectId: string,
    name: string,
    settings: UpstreamSettings,
  ): Promise<Upstream> {
    const url = withVersion(urlOf(settings));
    const prepared = providerNamed(settings.provider);
    return {
      name,
      url,
      apiKey: settings.apiKey &&
        new Secret(await secrets.open(settings.apiKey, projectKey(projectId))),
      onAbort: settings.onAbort ?? null,
      maxTokensField: settings.maxTokensField ?? null,
      formats: settings.formats ?? prepared?.formats ?? null,
      keyHeader: prepared?.keyHeader ?? "authorization",
      headers: settings.headers ?? {},
      apiVersion: settings.apiVersion ?? null,
      timeouts: settings.timeouts ?? {},
      knownDialects: dialectsOf(url),
      request: deps.requestUpstream,
    };
  }

  // There are new settings for each version of the project's row, so what is opened ends with it.
  const opened = new WeakMap<UpstreamSettings, Promise<Upstream>>();
  function openedAs({ id }: Project, name: string, settings: UpstreamSettings): Promise<Upstream> {
    const known = opened.get(settings) ?? open(id, name, settings);
    opened.set(settings, known);
    return known;
  }

  const fromEnvironment: Upstream | null = config.upstream && {
    ...unnamed,
    ...config.upstream,
    knownDialects: dialectsOf(config.upstream.url),
    request: deps.requestUpstream,
  };
  const sandbox: Upstream = {
    ...unnamed,
    formats: ["chat"],
    url: "http://sandbox.invalid/v1",
    apiKey: null,
    knownDialects: dialectsOf("sandbox"),
    request: requestByFetch((url, init) => respondInSandbox(new Request(url, init), deps)),
  };

  const findUpstream: FindUpstream = async (project, model) => {
    if (config.dev && model === sandboxModel) return sandbox;
    const { upstream } = project;
    return upstream ? await openedAs(project, unnamed.name, upstream) : fromEnvironment;
  };

  const findUpstreamNamed: FindUpstreamNamed = async (project, name) => {
    if (name === null) return await findUpstream(project, "");
    const settings = project.upstreams?.[name];
    return settings ? await openedAs(project, name, settings) : null;
  };

  const findTargets: FindTargets = async (project, model) => {
    const route = routeOf(project, model);
    if (!route) {
      const upstream = await findUpstream(project, model);
      return { route, targets: upstream ? [{ upstream, model, weight: 1, place: null }] : [] };
    }
    const { upstreams = {} } = project;
    const targets: Target[] = [];
    for (const { upstream: name, model: there = model, weight } of route.targets) {
      const settings = upstreams[name];
      if (!settings || !servesModel(settings, there)) continue;
      const upstream = await openedAs(project, name, settings);
      targets.push({ upstream, model: there, weight, place: settings });
    }
    return { route, targets };
  };
  return { findUpstream, findTargets, findUpstreamNamed };
}

const unnamed = {
  name: "default",
  onAbort: null,
  maxTokensField: null,
  formats: null,
  keyHeader: "authorization",
  headers: {},
  apiVersion: null,
  timeouts: {},
} as const;

/** The route of a model: its own, else that of `*`; null where no route is for it. */
function routeOf({ routes = {} }: Project, model: string): ModelRoute | null {
  return (Object.hasOwn(routes, model) ? routes[model] : routes["*"]) ?? null;
}
