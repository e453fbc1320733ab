import { latencyBuckets } from "./buckets.ts";
import type { MetricCounter, MetricHistogram, MetricsRegistry } from "./registry.ts";

/** The counters of one kind of request. */
interface RequestMetrics {
  seen(status: number, ms: number): void;
}

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"];
const classes = ["2xx", "3xx", "4xx", "5xx"];

/** Counts requests by their route, never by their own path. */
export function createRequestMetrics(
  page: MetricsRegistry,
): (route: string, method: string) => RequestMetrics {
  const count = page.counters({
    name: "farebox_requests_total",
    help: "Requests by route ('other': none), method and status class",
    labels: ["route", "method", "status"],
  });
  const time = page.histograms({
    name: "farebox_request_seconds",
    help: "From a request's arrival to the head of its response, by route",
    labels: ["route"],
    bounds: latencyBuckets,
  });
  const times = new Map<string, MetricHistogram>();
  const known = new Map<string, RequestMetrics>();

  function open(route: string, method: string): RequestMetrics {
    const spread = times.get(route) ?? time({ route });
    times.set(route, spread);
    const tallies: (MetricCounter | undefined)[] = [];
    return {
      seen(status, ms) {
        const at = Math.min(3, Math.max(0, Math.floor(status / 100) - 2));
        (tallies[at] ??= count({ route, method, status: classes[at] ?? "" })).add();
        spread.observeMs(ms);
      },
    };
  }

  return (route, requestMethod) => {
    const method = methods.includes(requestMethod) ? requestMethod : "other";
    const name = `${method} ${route}`;
    const made = known.get(name) ?? open(route, method);
    known.set(name, made);
    return made;
  };
}
