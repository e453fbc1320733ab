import { Secret } from "../base/secret.ts";
import type { Deps, RequestUpstream } from "../deps.ts";
import { withVersion } from "../config.ts";
import { requestByFetch } from "../http/by_fetch.ts";
import type { Project } from "../projects/schema.ts";
import { urlOf } from "../projects/upstream_schema.ts";
import { projectKey } from "../store/keys.ts";
import type { Secrets } from "../store/secrets.ts";
import type { DialectSource, KnownDialects } from "./dialect.ts";
import { respondInSandbox, sandboxModel } from "./sandbox.ts";

/** A server of models, with its key and what is known about it. */
export interface Upstream extends DialectSource {
  url: string;
  apiKey: Secret | null;
  onAbort: "estimate" | "drain" | null;
  request: RequestUpstream;
}

/** Finds the upstream of a project; null when none is set. */
export type FindUpstream = (project: Project, model: string) => Promise<Upstream | null>;

/**
 * The project's upstream, else that of the environment; in development also the simulated model.
 */
export function createUpstreams(deps: Deps, secrets: Secrets): FindUpstream {
  const learned = new Map<string, KnownDialects>();
  const opened = new WeakMap<Project, Promise<Upstream>>();

  function dialectsOf(url: string): KnownDialects {
    const known = learned.get(url) ?? new Map();
    learned.set(url, known);
    return known;
  }

  async function open({ id, upstream }: Project): Promise<Upstream> {
    if (!upstream) throw new Error("the project has no upstream of its own");
    const url = withVersion(urlOf(upstream));
    return {
      url,
      apiKey: upstream.apiKey &&
        new Secret(await secrets.open(upstream.apiKey, projectKey(id))),
      onAbort: upstream.onAbort ?? null,
      maxTokensField: upstream.maxTokensField ?? null,
      formats: upstream.formats ?? null,
      knownDialects: dialectsOf(url),
      request: deps.requestUpstream,
    };
  }

  const common = { onAbort: null, maxTokensField: null, formats: null };
  const { config } = deps;
  const fromEnvironment: Upstream | null = config.upstream &&
    {
      ...config.upstream,
      ...common,
      knownDialects: dialectsOf(config.upstream.url),
      request: deps.requestUpstream,
    };
  const sandbox: Upstream = {
    ...common,
    formats: ["chat"],
    url: "http://sandbox.invalid/v1",
    apiKey: null,
    knownDialects: dialectsOf("sandbox"),
    request: requestByFetch((url, init) => respondInSandbox(new Request(url, init), deps)),
  };

  return async (project, model) => {
    if (config.dev && model === sandboxModel) return sandbox;
    if (!project.upstream) return fromEnvironment;
    let own = opened.get(project);
    if (!own) opened.set(project, own = open(project));
    return await own;
  };
}
