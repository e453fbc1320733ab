/** @jsxImportSource @hono/hono/jsx */
import type { Deps } from "../../deps.ts";
import { BarChart } from "../../pages/chart.tsx";
import { startOfHour } from "../../summaries/hourly_counters.ts";
import { listLogs } from "../../webhooks/delivery/logs.ts";
import type { LogEntry } from "../../webhooks/view.ts";

const hourMs = 60 * 60 * 1000;
const hoursShown = 24;
const perRead = 100;
const readsMax = 5;

/** The newest deliveries to a subscription: those of 24 hours, of at most 500. */
export interface RecentDeliveries {
  logs: readonly LogEntry[];
  /** Whether older ones of the same day were not read. */
  isCut: boolean;
}

/** Reads the newest deliveries to a subscription. */
export async function recentDeliveries(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  projectId: string,
  subscriptionId: string,
): Promise<RecentDeliveries> {
  const since = startOfHour(clock.now()) - (hoursShown - 1) * hourMs;
  const logs: LogEntry[] = [];
  let cursor: string | undefined;
  for (let read = 0; read < readsMax; read++) {
    const query = { filter: { subscriptionId }, status: null, limit: perRead, cursor };
    const page = await listLogs({ kv }, projectId, query);
    const young = page.logs.filter(({ createdAt }) => Date.parse(createdAt) >= since);
    logs.push(...young);
    if (page.nextCursor === null || young.length < page.logs.length) return { logs, isCut: false };
    cursor = page.nextCursor;
  }
  return { logs, isCut: true };
}

/** How many deliveries of each hour succeeded; nothing where there were none. */
export function DeliveryChart({ deliveries: { logs, isCut }, now }: {
  deliveries: RecentDeliveries;
  now: number;
}) {
  if (logs.length === 0) return null;
  const first = startOfHour(now) - (hoursShown - 1) * hourMs;
  const bars = Array.from({ length: hoursShown }, (_, at) => {
    const start = first + at * hourMs;
    const ofHour = logs.filter(({ createdAt }) => startOfHour(Date.parse(createdAt)) === start);
    const counted = [count(ofHour, "success"), count(ofHour, "error"), count(ofHour, "pending")];
    const label = new Date(start).toISOString().slice(0, 16).replace("T", " ");
    return { label, tick: label.slice(11), values: counted, figures: counted.map(String) };
  });
  return (
    <BarChart
      id="deliveries"
      title="Deliveries by hour"
      says={successOf({ logs, isCut }).says}
      series={["Delivered", "Failed", "Pending"]}
      bars={bars}
      axis={(value) => String(value)}
      wide
    />
  );
}

/** Returns how many of the newest deliveries succeeded, as figures; none without deliveries. */
export function deliveryFigures(deliveries: RecentDeliveries) {
  const { logs, isCut } = deliveries;
  if (logs.length === 0) return [];
  const { delivered, ended } = successOf(deliveries);
  const share = ended === 0 ? "–" : `${Math.round((delivered / ended) * 100)} %`;
  const which = isCut ? `of the last ${logs.length}` : "in 24 hours";
  return [
    { label: "Success rate", value: share, note: which },
    { label: "Failed", value: String(count(logs, "error")), note: which },
    { label: "Pending", value: String(count(logs, "pending")), note: which },
  ];
}

function successOf({ logs, isCut }: RecentDeliveries) {
  const delivered = count(logs, "success");
  const ended = delivered + count(logs, "error");
  const which = isCut ? `the last ${logs.length}` : "24 hours";
  const says = `${delivered} of ${ended} ended deliveries of ${which} succeeded.`;
  return { delivered, ended, says };
}

function count(logs: readonly LogEntry[], status: LogEntry["status"]): number {
  return logs.filter((log) => log.status === status).length;
}
