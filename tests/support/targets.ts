import type { ModelRoute } from "../../src/projects/upstream_schema.ts";
import { LearnedFacts } from "../../src/upstreams/learned.ts";
import { Secret } from "../../src/base/secret.ts";
import { testPricing } from "./world.ts";
import type { ChoiceCall } from "../../src/upstreams/target_choice.ts";
import type { Target, Targets, Upstream } from "../../src/upstreams/upstream.ts";

/** An upstream that is never asked. */
export function upstreamNamed(name: string, apiKey: string | null = null): Upstream {
  return {
    name,
    url: `http://${name}.example/v1`,
    apiKey: apiKey === null ? null : new Secret(apiKey),
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
    learned: new LearnedFacts({ elapsed: () => 0 }),
    request: () => Promise.reject(new Error("never asked")),
  };
}

/** The targets of one call, new objects each time: `m` of the upstreams with these weights. */
export function targetsOf(
  weights: Record<string, number>,
  strategy: ModelRoute["strategy"] = "order",
  { sticky = false, apiKey = null }: { sticky?: boolean; apiKey?: string | null } = {},
): Targets {
  const targets: Target[] = Object.entries(weights).map(([name, weight]) => ({
    upstream: upstreamNamed(name, apiKey),
    model: "m",
    weight,
    place: null,
  }));
  const listed = targets.map(({ upstream: { name: upstream }, weight }) => ({ upstream, weight }));
  return { route: { strategy, sticky, targets: listed }, targets };
}

/** A call by one user. */
export function choiceCall(random: () => number, more: Partial<ChoiceCall> = {}): ChoiceCall {
  return { stickyKey: null, preferred: null, random, costOf: () => null, ...more };
}

/** The upstreams' names, in order. */
export function namesOf(targets: readonly Target[]): string[] {
  return targets.map(({ upstream }) => upstream.name);
}

/** A project with a route from `gpt-4o`, whose price is the catalogue's, to two upstreams. */
export const routedProject = {
  upstreams: {
    main: { url: "https://main.example/v1", provider: "openai" },
    spare: { url: "https://spare.example/v1", provider: "openai" },
  },
  routes: { "gpt-4o": { targets: [{ upstream: "main" }, { upstream: "spare" }] } },
  pricing: { ...testPricing, catalogue: true },
};
