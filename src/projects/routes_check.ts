import { badRequest } from "../base/errors.ts";
import { usualUpstream } from "./instance_upstreams.ts";
import type { Project } from "./schema.ts";

/** Throws 400 for a route that leads to an upstream which the project does not have. */
export function requireTargets(
  { routes, upstreams }: Project,
  ofInstance: Readonly<Record<string, unknown>>,
): void {
  const isKnown = (name: string) =>
    name === usualUpstream || Object.hasOwn(upstreams, name) || Object.hasOwn(ofInstance, name);
  for (const [model, { targets }] of Object.entries(routes)) {
    for (const [at, { upstream }] of targets.entries()) {
      if (isKnown(upstream)) continue;
      const param = `routes.${model}.targets.${at}.upstream`;
      throw badRequest(param, `'${param}' names no upstream of 'upstreams': '${upstream}'.`);
    }
  }
}
