import { latencyBounds } from "./bounds.ts";
import type { Page, Spread, Tally } from "./page.ts";

/** What one kind of request comes to. */
export interface RequestMeter {
  seen(status: number, ms: number): void;
}

const methods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"];
const classes = ["2xx", "3xx", "4xx", "5xx"];

/** Counts requests by the address of the route map that they came to, never by their own path. */
export function requestMeters(page: Page): (route: string, method: string) => RequestMeter {
  const count = page.tallies({
    name: "farebox_requests_total",
    help: "Requests by address in the route map ('other': none), method and class of status",
    labels: ["route", "method", "status"],
  });
  const time = page.spreads({
    name: "farebox_request_seconds",
    help: "From a request's arrival to the head of its answer, by address in the route map",
    labels: ["route"],
    bounds: latencyBounds,
  });
  const times = new Map<string, Spread>();
  const known = new Map<string, RequestMeter>();

  function open(route: string, method: string): RequestMeter {
    const spread = times.get(route) ?? time({ route });
    times.set(route, spread);
    const tallies: (Tally | undefined)[] = [];
    return {
      seen(status, ms) {
        const at = Math.min(3, Math.max(0, Math.floor(status / 100) - 2));
        (tallies[at] ??= count({ route, method, status: classes[at] ?? "" })).add();
        spread.observeMs(ms);
      },
    };
  }

  return (route, asked) => {
    const method = methods.includes(asked) ? asked : "other";
    const name = `${method} ${route}`;
    const made = known.get(name) ?? open(route, method);
    known.set(name, made);
    return made;
  };
}
