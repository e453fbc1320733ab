/** @jsxImportSource @hono/hono/jsx */
import type { Handler } from "../../base/handler.ts";
import { listLogs } from "../../webhooks/delivery/logs.ts";
import type { DeliveryStatus } from "../../webhooks/schema.ts";
import type { LogEntry } from "../../webhooks/view.ts";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { Badge, Pager, Table, Tabs, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";

const perPage = 25;
const statuses: readonly DeliveryStatus[] = ["pending", "success", "error"];
const statusTitles: Readonly<Record<DeliveryStatus, string>> = {
  pending: "Pending",
  success: "Delivered",
  error: "Failed",
};

/** All deliveries of a project. */
export function deliveriesPage(guard: ConsoleGuard, services: ConsoleDeps): Handler {
  return guard.project(async (visit) => {
    const list = await deliveryList(services, visit, { address: visit.here("/deliveries") });
    return visit.page("Deliveries", list, { section: "/webhooks" });
  });
}

/** The deliveries of a project, or to one subscription, filtered by the status in the URL. */
export async function deliveryList(
  { deps }: ConsoleDeps,
  { project, incoming, here }: ProjectVisit,
  { address, subscriptionId }: { address: string; subscriptionId?: string },
) {
  const wanted = incoming.query("status");
  const status = statuses.find((known) => known === wanted) ?? null;
  const cursor = incoming.query("cursor");
  const { logs, nextCursor } = await listLogs(deps, project.id, {
    filter: { subscriptionId },
    status,
    limit: perPage,
    cursor,
  });
  const shown = status === null ? address : `${address}?status=${status}`;
  const tabs = [null, ...statuses].map((each) => ({
    title: each === null ? "All" : statusTitles[each],
    href: each === null ? address : `${address}?status=${each}`,
    shown: each === status,
  }));
  const older = `${shown}${status === null ? "?" : "&"}cursor=${
    encodeURIComponent(nextCursor ?? "")
  }`;
  return (
    <>
      <Tabs label="Status" tabs={tabs} />
      <Deliveries logs={logs} here={here} isWhole={status === null} />
      <Pager
        older={nextCursor === null ? null : older}
        newest={cursor === undefined ? null : shown}
      />
    </>
  );
}

/** A delivery's status as a word and a color. */
export function Status({ status }: { status: DeliveryStatus }) {
  const tone = status === "success" ? "good" : status === "error" ? "bad" : "late";
  return <Badge tone={tone}>{statusTitles[status]}</Badge>;
}

function Deliveries({ logs, here, isWhole }: {
  logs: LogEntry[];
  here: (path: string) => string;
  /** Whether all statuses are shown. */
  isWhole: boolean;
}) {
  return (
    <Table
      caption="Newest first"
      columns={[
        "When",
        { title: "Event", phone: "line" },
        { title: "Status", lead: true },
        { title: "Attempts", number: true, phone: "none" },
        { title: "Response", number: true },
        { title: "Error", phone: "line" },
        "Next attempt",
      ]}
      rows={logs.map((entry) => [
        <a href={here(`/deliveries/${entry.id}`)}>
          <TimeCell at={entry.createdAt} as="stamp" />
        </a>,
        <code>{entry.event?.type ?? "no longer stored"}</code>,
        <Status status={entry.status} />,
        entry.attempts,
        entry.responseCode ?? "none",
        // The response says the same.
        entry.error === `status ${entry.responseCode}` ? "" : entry.error ?? "",
        entry.nextRetryAt === null ? "" : <TimeCell at={entry.nextRetryAt} />,
      ])}
      empty={isWhole ? "No deliveries yet." : "No deliveries with this status."}
    />
  );
}
