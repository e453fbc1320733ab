import { Secret } from "../base/secret.ts";
import type { AskUpstream, Deps } from "../deps.ts";
import { withVersion } from "../config.ts";
import { askByFetch } from "../http/by_fetch.ts";
import type { Project } from "../projects/schema.ts";
import { projectKey } from "../store/keys.ts";
import type { Secrets } from "../store/secrets.ts";
import { answerInSandbox, sandboxModel } from "./sandbox.ts";
import type { ChatRequest } from "./schema.ts";

/** The field by which an upstream is told how long an answer may get. */
export type MaxTokensField = "max_tokens" | "max_completion_tokens";

/** A server that answers chats. */
export interface Upstream {
  url: string;
  apiKey: Secret | null;
  onAbort: "estimate" | "drain" | null;
  /** What was said in its settings; else it is learnt. */
  maxTokensField: MaxTokensField | null;
  /** What this process has learnt of it. */
  quirks: Quirks;
  ask: AskUpstream;
}

/** How a server differs from OpenAI's, as it has shown so far. */
export interface Quirks {
  /** It refuses `stream_options`, so its streams' usage is our own count. */
  refusesStreamOptions: boolean;
  /** By model: the field that it did not refuse. */
  maxTokensFields: Map<string, MaxTokensField>;
}

/** Finds the upstream of a project; null when none is set. */
export type FindUpstream = (project: Project, model: string) => Promise<Upstream | null>;

const modelsRememberedMax = 1_000;

/** Upstreams by project, else by environment; in development the simulated model besides. */
export function createUpstreams(deps: Deps, secrets: Secrets): FindUpstream {
  const quirks = new Map<string, Quirks>();
  const opened = new WeakMap<Project, Promise<Upstream>>();

  function quirksOf(url: string): Quirks {
    const known = quirks.get(url) ?? { refusesStreamOptions: false, maxTokensFields: new Map() };
    if (known.maxTokensFields.size > modelsRememberedMax) known.maxTokensFields.clear();
    quirks.set(url, known);
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
      quirks: quirksOf(url),
      ask: deps.askUpstream,
    };
  }

  const common = { onAbort: null, maxTokensField: null };
  const { config } = deps;
  const fromEnvironment: Upstream | null = config.upstream &&
    { ...config.upstream, ...common, quirks: quirksOf(config.upstream.url), ask: deps.askUpstream };
  const sandbox: Upstream = {
    ...common,
    url: "http://sandbox.invalid/v1",
    apiKey: null,
    quirks: quirksOf("sandbox"),
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

// These refuse `max_tokens`; elsewhere it is the field that every server knows: some ignore the
// newer one without a word, and would then write on without a bound.
const newFieldNames = /^(o\d|gpt-5)/;

/** How a call says what we add to it. */
export interface Manner {
  /** Of a stream: by `stream_options`. */
  asksUsage: boolean;
  maxTokensField: MaxTokensField;
}

/** How this upstream is told, as far as is known of it. */
export function mannerFor({ maxTokensField, quirks }: Upstream, { model }: ChatRequest): Manner {
  const usual = newFieldNames.test(model) ? "max_completion_tokens" : "max_tokens";
  return {
    asksUsage: !quirks.refusesStreamOptions,
    maxTokensField: maxTokensField ?? quirks.maxTokensFields.get(model) ?? usual,
  };
}

/** Remembers what an upstream understood that had refused another manner. */
export function learn({ quirks }: Upstream, { model, stream }: ChatRequest, manner: Manner): void {
  if (stream) quirks.refusesStreamOptions = !manner.asksUsage;
  quirks.maxTokensFields.set(model, manner.maxTokensField);
}
