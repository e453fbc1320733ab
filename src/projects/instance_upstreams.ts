import { z } from "zod";
import { issueWords } from "../base/issue_words.ts";
import { Secret } from "../base/secret.ts";
import type { Config } from "../config/config.ts";
import {
  type ModelRoute,
  routesSchema,
  type UpstreamSettings,
  upstreamsSchema,
} from "./upstream_schema.ts";

/** Upstreams and routes of the instance, which every project may use. */
interface InstanceUpstreams {
  upstreams: Readonly<Record<string, UpstreamSettings>>;
  /** Their keys, by their names. */
  apiKeys: Readonly<Record<string, Secret>>;
  routes: Readonly<Record<string, ModelRoute>>;
}

/** The name by which routes lead to the upstream that a model without a route goes to. */
export const usualUpstream = "default";

const schema = z.strictObject({
  upstreams: upstreamsSchema.default({}),
  routes: routesSchema.default({}),
});

/** Reads the upstreams of the settings. Throws an error that names what is wrong in them. */
export function readInstanceUpstreams(
  { upstreams: shared }: Pick<Config, "upstreams">,
): InstanceUpstreams {
  if (shared === null) return { upstreams: {}, apiKeys: {}, routes: {} };
  const { setting, json } = shared;
  const read = schema.safeParse(JSON.parse(json.reveal()));
  if (!read.success) throw new Error(faultOf(setting, read.error));
  const { upstreams, routes } = read.data;
  for (const [model, { targets }] of Object.entries(routes)) {
    for (const { upstream } of targets) {
      if (upstream === usualUpstream || Object.hasOwn(upstreams, upstream)) continue;
      throw new Error(`${setting}: 'routes.${model}' names no upstream of it: '${upstream}'`);
    }
  }
  const keys = Object.entries(upstreams).flatMap(([name, { apiKey }]) =>
    typeof apiKey === "string" ? [[name, new Secret(apiKey)] as const] : []
  );
  const withoutKeys = Object.entries(upstreams).map(([name, settings]) =>
    [name, { ...settings, apiKey: null }] as const
  );
  return {
    upstreams: Object.fromEntries(withoutKeys),
    apiKeys: Object.fromEntries(keys),
    routes,
  };
}

function faultOf(setting: string, { issues: [issue] }: z.ZodError): string {
  const path = issue?.path.join(".");
  return `${setting}: ${path ? `'${path}' ` : ""}${issue && issueWords(issue)}`;
}
