import { z } from "zod";
import { Secret } from "../base/secret.ts";
import type { Config } from "../config.ts";
import {
  type ModelRoute,
  routesSchema,
  type UpstreamSettings,
  upstreamsSchema,
} from "./upstream_schema.ts";

/** Upstreams and routes of the instance, which every project may use. */
export interface InstanceUpstreams {
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

/** Reads the setting UPSTREAMS. Throws an error that names what is wrong in it. */
export function readInstanceUpstreams({ upstreams: text }: Config): InstanceUpstreams {
  if (text === null) return { upstreams: {}, apiKeys: {}, routes: {} };
  const read = schema.safeParse(parsed(text.reveal()));
  if (!read.success) {
    const [issue] = read.error.issues;
    throw new Error(`UPSTREAMS: '${issue?.path.join(".")}' ${issue?.message}`);
  }
  const { upstreams, routes } = read.data;
  for (const [model, { targets }] of Object.entries(routes)) {
    for (const { upstream } of targets) {
      if (upstream === usualUpstream || Object.hasOwn(upstreams, upstream)) continue;
      throw new Error(`UPSTREAMS: 'routes.${model}' names no upstream of it: '${upstream}'`);
    }
  }
  const keys = Object.entries(upstreams).flatMap(([name, { apiKey }]) =>
    apiKey === undefined ? [] : [[name, new Secret(apiKey)] as const]
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

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("UPSTREAMS must be JSON");
  }
}
