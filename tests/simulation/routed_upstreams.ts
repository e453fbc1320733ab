import { modelName } from "../support/model_formats.ts";
import type { Timeline } from "./timeline.ts";

/** An upstream that routes lead to: its host, the model there, and that model's list price. */
interface RoutedUpstream {
  host: string;
  model: string;
  /** In 1e-9 units a token. */
  input: bigint;
  output: bigint;
}

/** Upstreams of projects with routes, by their names. */
export const routedUpstreams: Readonly<Record<string, RoutedUpstream>> = {
  main: { host: "main.test", model: "gpt-4o", input: 2_500n, output: 10_000n },
  spare: { host: "spare.test", model: "gpt-4o-mini", input: 150n, output: 600n },
};
/** What both of them ask for a search, in 1e-9 units. */
export const searchPrice = 10_000_000n;

const strategies = ["order", "order", "weight", "cheapest", "fastest"] as const;

/** Settings of a project with a route for the model that callers ask for. */
export function routedSettings(timeline: Timeline): Record<string, unknown> {
  const timeouts = timeline.pick([
    null,
    { connectMs: 2_000 },
    { firstByteMs: 5_000 },
    { connectMs: 1_000, firstByteMs: 8_000, totalMs: 30_000 },
  ]);
  const upstreams = Object.fromEntries(
    Object.entries(routedUpstreams).map(([name, { host }]) => [
      name,
      {
        url: `https://${host}/v1`,
        apiKey: `${name}-key`,
        provider: "openai",
        formats: ["chat", "responses", "messages"],
        ...(timeouts ? { timeouts } : {}),
      },
    ]),
  );
  return { upstreams, ...routesOf(timeline) };
}

/** A route to all of them, in any order. */
export function routesOf(timeline: Timeline): Record<string, unknown> {
  const targets = Object.entries(routedUpstreams).map(([upstream, { model }]) => ({
    upstream,
    model,
    weight: timeline.pick([0, 1, 3]),
  }));
  if (timeline.chance(0.5)) targets.reverse();
  const strategy = timeline.pick(strategies);
  return { routes: { [modelName]: { strategy, sticky: timeline.chance(0.5), targets } } };
}

/** The name of the upstream at a host; null for the usual one. */
export function upstreamAt(host: string): string | null {
  const found = Object.entries(routedUpstreams).find(([, upstream]) => upstream.host === host);
  return found ? found[0] : null;
}
