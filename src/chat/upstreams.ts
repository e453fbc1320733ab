import { Secret } from "../base/secret.ts";
import type { AskUpstream, Deps } from "../deps.ts";
import { withVersion } from "../config.ts";
import { askByFetch } from "../http/by_fetch.ts";
import type { Project } from "../projects/schema.ts";
import { projectKey } from "../store/keys.ts";
import type { Secrets } from "../store/secrets.ts";
import type { Learnt, Spoken } from "./manner.ts";
import { answerInSandbox, sandboxModel } from "./sandbox.ts";

/** A server that answers chats. */
export interface Upstream extends Spoken {
  url: string;
  apiKey: Secret | null;
  onAbort: "estimate" | "drain" | null;
  ask: AskUpstream;
}

/** Finds the upstream of a project; null when none is set. */
export type FindUpstream = (project: Project, model: string) => Promise<Upstream | null>;

/** Upstreams by project, else by environment; in development the simulated model besides. */
export function createUpstreams(deps: Deps, secrets: Secrets): FindUpstream {
  const learnt = new Map<string, Learnt>();
  const opened = new WeakMap<Project, Promise<Upstream>>();

  function learntOf(url: string): Learnt {
    const known = learnt.get(url) ?? new Map();
    learnt.set(url, known);
    return known;
  }

  async function open({ id, upstream }: Project): Promise<Upstream> {
    if (!upstream) throw new Error("the project has no upstream of its own");
    const url = withVersion(upstream.url);
    return {
      url,
      apiKey: upstream.apiKey &&
        new Secret(await secrets.open(upstream.apiKey, projectKey(id))),
      onAbort: upstream.onAbort ?? null,
      maxTokensField: upstream.maxTokensField ?? null,
      learnt: learntOf(url),
      ask: deps.askUpstream,
    };
  }

  const common = { onAbort: null, maxTokensField: null };
  const { config } = deps;
  const fromEnvironment: Upstream | null = config.upstream &&
    { ...config.upstream, ...common, learnt: learntOf(config.upstream.url), ask: deps.askUpstream };
  const sandbox: Upstream = {
    ...common,
    url: "http://sandbox.invalid/v1",
    apiKey: null,
    learnt: learntOf("sandbox"),
    ask: askByFetch((url, init) => answerInSandbox(new Request(url, init), deps)),
  };

  return async (project, model) => {
    if (config.dev && model === sandboxModel) return sandbox;
    if (!project.upstream) return fromEnvironment;
    let own = opened.get(project);
    if (!own) opened.set(project, own = open(project));
    return await own;
  };
}
