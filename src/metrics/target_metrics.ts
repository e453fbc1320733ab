import { latencyBuckets } from "./buckets.ts";
import {
  forEachName,
  type MetricCounter,
  type MetricHistogram,
  type MetricsRegistry,
} from "./registry.ts";

/** Kinds of upstream errors. */
export const upstreamErrorKinds = [
  ...["refused", "rate_limited", "account", "failed"] as const,
  ...["invalid", "broken_off", "too_large", "unreachable", "timeout"] as const,
];

/** How an attempt can end: with an answer, or with a kind of error. */
type AttemptOutcome = typeof upstreamErrorKinds[number] | "answered";

/** What is counted of one upstream that routes lead to. */
interface TargetMeters {
  attempts: Record<AttemptOutcome, MetricCounter>;
  /** From an attempt's start to the first event, or to the end of a whole response. */
  firstToken: MetricHistogram;
  /** What responses and failed attempts cost by price lists, by currency. */
  cost(currency: string): MetricCounter;
}

/** Owners name upstreams: beyond so many names, others are counted together. */
const namesMax = 200;
const otherNames = "other";

/** Counts attempts by the name that an upstream has in settings, whatever the project. */
export function createTargetMetrics(page: MetricsRegistry): (upstream: string) => TargetMeters {
  const attempts = page.counters({
    name: "farebox_attempts_total",
    help: "Attempts of routed calls by upstream and how they ended",
    labels: ["upstream", "outcome"],
  });
  const firstToken = page.histograms({
    name: "farebox_attempt_first_token_seconds",
    help: "From an attempt's start to the first event, or to the end of a whole response",
    labels: ["upstream"],
    bounds: latencyBuckets,
  });
  const cost = page.counters({
    name: "farebox_attempts_cost_total",
    help: "What routed calls cost by their providers' price lists: a float, for graphs",
    labels: ["upstream", "currency"],
  });
  const known = new Map<string, TargetMeters>();

  function open(upstream: string): TargetMeters {
    const outcomes = [...upstreamErrorKinds, "answered"] as const;
    const costs = new Map<string, MetricCounter>();
    const meters: TargetMeters = {
      attempts: forEachName(outcomes, (outcome) => attempts({ upstream, outcome })),
      firstToken: firstToken({ upstream }),
      cost(currency) {
        const found = costs.get(currency) ?? cost({ upstream, currency });
        costs.set(currency, found);
        return found;
      },
    };
    known.set(upstream, meters);
    return meters;
  }

  return (upstream) => {
    const found = known.get(upstream);
    if (found) return found;
    const name = known.size < namesMax ? upstream : otherNames;
    return known.get(name) ?? open(name);
  };
}
