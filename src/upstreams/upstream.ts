import type { Secret } from "../base/secret.ts";
import type { RequestUpstream } from "../deps.ts";
import type { Project } from "../projects/schema.ts";
import type { ModelRoute, UpstreamSettings } from "../projects/upstream_schema.ts";
import type { DialectSource } from "./dialect.ts";

/** A server of models, with its key and what is known about it. */
export interface Upstream extends DialectSource {
  /** The upstream's name in the project's settings; `default` for the one that has none. */
  name: string;
  url: string;
  apiKey: Secret | null;
  onAbort: "estimate" | "drain" | null;
  /** The header that carries the key, in lower case. */
  keyHeader: "authorization" | "x-api-key" | "api-key";
  /** Headers of every request to the upstream. */
  headers: Readonly<Record<string, string>>;
  /**
   * The path of the upstream's list of models, below the URL; null where the list does not have the
   * names that calls use.
   */
  modelsPath: string | null;
  /**
   * The version of Azure's dated API, where calls go to the deployment of the model's name; else
   * null.
   */
  apiVersion: string | null;
  timeouts: NonNullable<UpstreamSettings["timeouts"]>;
  /** The project that the upstream belongs to, or `operator`. */
  owner: string;
  request: RequestUpstream;
}

/** A model of an upstream, which can answer a call. */
export interface Target {
  upstream: Upstream;
  /** The model's name at the upstream. */
  model: string;
  /** The weight of this target, where targets are chosen by chance. */
  weight: number;
  /** The place on which the catalogue's prices depend; null for the project's usual upstream. */
  place: Pick<UpstreamSettings, "url" | "provider"> | null;
}

/** The targets of a model's calls. */
export interface Targets {
  /** The route that leads to the targets; null where there is none, and thus one target. */
  route: ModelRoute | null;
  targets: readonly Target[];
}

/** Finds an upstream by its name; the usual one for null. Null where there is none. */
export type FindUpstreamNamed = (
  project: Project,
  name: string | null,
) => Promise<Upstream | null>;

/** Finds the targets of a model's calls; none where no upstream is set. */
export type FindTargets = (project: Project, model: string) => Promise<Targets> | Targets;

/** An upstream to which models without a route of their own go, under their own names. */
export interface CatchAll extends Pick<Target, "upstream" | "place"> {
  /** Whether the upstream's settings say that it serves a model. */
  serves(model: string): boolean;
  /** The models that the upstream's settings name. */
  names: readonly string[];
}
