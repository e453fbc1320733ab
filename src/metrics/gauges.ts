import type { Deps, ProcessFacts } from "../deps.ts";
import type { MetricsRegistry } from "./registry.ts";

/** Where the numbers come from that are looked up when the page is read. Cheap, each of them. */
export interface GaugeReadings {
  requests(): number;
  answers(): number;
  holds(): { open: number; oldestMs: number };
  deliveries(): { running: number; queued: number };
  backlog(): Promise<{ due: number; oldestMs: number; events: number }>;
}

/** Puts the looked-up numbers on the page. */
export function addGauges({ metrics: { page }, process }: Deps, readings: GaugeReadings): void {
  const { holds, deliveries, backlog } = readings;
  page.gauge(
    "farebox_requests_under_way",
    "Requests whose handler runs, but for probes",
    readings.requests,
  );
  page.gauge("farebox_answers_running", "Chats of this process that hold money", readings.answers);
  page.gauge(
    "farebox_holds_open",
    "Holds in the whole database, as of the last round of the sweep",
    () => holds().open,
  );
  page.gauge(
    "farebox_hold_oldest_seconds",
    "Age of the oldest of these holds; an answer may run for an hour",
    () => holds().oldestMs / 1000,
  );
  page.gauge("farebox_deliveries_running", "Tries of webhooks now", () => deliveries().running);
  page.gauge(
    "farebox_deliveries_queued",
    "Webhooks leased by this process that wait in its memory",
    () => deliveries().queued,
  );
  page.gauge(
    "farebox_deliveries_due",
    "Webhooks due in the store, of the first subscriptions alone when there are very many",
    async () => (await backlog()).due,
  );
  page.gauge(
    "farebox_delivery_due_oldest_seconds",
    "How long the webhook has waited that is due longest",
    async () => (await backlog()).oldestMs / 1000,
  );
  page.gauge(
    "farebox_events_waiting",
    "Events whose webhooks should have been written by now, counted up to a bound",
    async () => (await backlog()).events,
  );
  addProcess(page, process);
}

function addProcess(
  page: MetricsRegistry,
  { startedAt, runtime, memory, cpuSeconds }: ProcessFacts,
): void {
  page.gauge("process_resident_memory_bytes", "Memory of the process", () => memory().rss);
  page.gauge("process_heap_bytes", "Its JavaScript heap in use", () => memory().heapUsed);
  page.total("process_cpu_seconds_total", "Processor time since its start", cpuSeconds);
  page.gauge("process_start_time_seconds", "When it started, since 1970", () => startedAt / 1000);
  page.facts("farebox_build_info", "What it runs on: always 1", runtime);
}
