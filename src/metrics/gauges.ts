import { type KeptKind, keptKinds } from "../base/kept_kinds.ts";
import type { Deps, ProcessFacts } from "../deps.ts";
import type { MetricsRegistry } from "./registry.ts";

/** The values that are read when the page is requested. Each must be cheap. */
export interface GaugeReadings {
  requests(): number;
  answers(): number;
  holds(): { open: number; oldestMs: number };
  deliveries(): { running: number; queued: number };
  backlog(): Promise<{ due: number; oldestMs: number; events: number }>;
  removalBehindMs(kind: KeptKind): number;
}

/** Adds the gauges to the page. */
export function addGauges({ metrics: { page }, process }: Deps, readings: GaugeReadings): void {
  const { holds, deliveries, backlog } = readings;
  page.gauge(
    "farebox_requests_under_way",
    "Requests whose handler is running, except probes",
    readings.requests,
  );
  page.gauge("farebox_answers_running", "Calls of this process that hold money", readings.answers);
  page.gauge(
    "farebox_holds_open",
    "Holds in the whole database, as of the last round of the sweep",
    () => holds().open,
  );
  page.gauge(
    "farebox_hold_oldest_seconds",
    "Age of the oldest of these holds; a call may run for an hour",
    () => holds().oldestMs / 1000,
  );
  page.gauge(
    "farebox_deliveries_running",
    "Webhook attempts under way",
    () => deliveries().running,
  );
  page.gauge(
    "farebox_deliveries_queued",
    "Webhooks leased by this process that wait in its memory",
    () => deliveries().queued,
  );
  page.gauge(
    "farebox_deliveries_due",
    "Webhooks due in the store; only of the first subscriptions when there are very many",
    async () => (await backlog()).due,
  );
  page.gauge(
    "farebox_delivery_due_oldest_seconds",
    "How long the oldest due webhook has waited",
    async () => (await backlog()).oldestMs / 1000,
  );
  page.gauge(
    "farebox_events_waiting",
    "Events whose webhooks should have been written by now, counted up to a bound",
    async () => (await backlog()).events,
  );
  addRemoval(page, readings);
  addProcess(page, process);
}

function addRemoval(page: MetricsRegistry, { removalBehindMs }: GaugeReadings): void {
  page.gaugesBy({
    name: "farebox_removal_behind_seconds",
    help: "How long the oldest ended row of a kind has waited for its removal by this process",
    label: "kind",
    values: keptKinds,
    read: (kind) => removalBehindMs(kind) / 1000,
  });
}

function addProcess(
  page: MetricsRegistry,
  { startedAt, runtime, memory, cpuSeconds }: ProcessFacts,
): void {
  page.gauge("process_resident_memory_bytes", "Memory of the process", () => memory().rss);
  page.gauge("process_heap_bytes", "Used JavaScript heap", () => memory().heapUsed);
  page.total("process_cpu_seconds_total", "CPU time since the process started", cpuSeconds);
  page.gauge("process_start_time_seconds", "Start time since 1970", () => startedAt / 1000);
  page.facts("farebox_build_info", "The runtime's version: always 1", runtime);
}
