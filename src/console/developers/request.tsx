/** @jsxImportSource @hono/hono/jsx */
import { ownMember } from "../../base/json.ts";
import type { Child } from "@hono/hono/jsx";
import type { Handler } from "../../base/handler.ts";
import { fromDecimal, toAmount } from "../../base/money.ts";
import { callErrorText } from "../../inference/api_doc.ts";
import { Card, DetailList, ExactMoney, Table, TimeCell } from "../../pages/parts.tsx";
import { refusalReasons } from "../../base/refusal_reasons.ts";
import { readRequestAt } from "../../requests/list.ts";
import type { RequestRecord } from "../../requests/record.ts";
import { findLogs } from "../../webhooks/delivery/logs.ts";
import type { LogEntry } from "../../webhooks/view.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { Status } from "./deliveries.tsx";
import type { ConsoleGuard, ProjectVisit } from "../guard.tsx";
import { nameOfKey } from "./key_name.ts";
import { msText, OutcomeBadge } from "./request_parts.tsx";
import { addressOf, UserLink } from "../users/user_link.tsx";

/** Events of refused requests are grouped, and follow within so long. */
const eventsLaterMs = 70_000;

/** One request: what came of it and why, what it used and cost, its entry and its events. */
export function requestPage(guard: ConsoleGuard, { deps, admin }: ConsoleDeps): Handler {
  return guard.project(async (visit) => {
    const { project, incoming, page } = visit;
    const request = await readRequestAt(deps.kv, project.id, incoming.query("place") ?? "");
    const { at, latencyMs, id, activityId } = request;
    const [keys, events] = await Promise.all([
      admin.keys(project.id),
      findLogs(deps, project.id, {
        from: at - 1_000,
        to: at + latencyMs + eventsLaterMs,
        texts: activityId === null ? [id] : [id, activityId],
      }),
    ]);
    const key = keys.find((known) => known.id === request.key);
    const keyName = key ? nameOfKey(key) : request.key === "dev" ? "sk_dev" : "deleted";
    return page(
      "Request",
      <>
        <div class="cards">
          <Card title="Result">
            <DetailList rows={endingOf(request)} />
          </Card>
          <Card title="Details">
            <DetailList rows={callOf(visit, request, keyName)} />
          </Card>
          <Card title="Usage and cost">
            <DetailList rows={costOf(visit, request)} />
          </Card>
        </div>
        <Events visit={visit} request={request} {...events} />
      </>,
      {
        section: "/requests",
        note: <TimeCell at={at} as="stamp" />,
      },
    );
  });
}

type Rows = readonly (readonly [name: string, value: Child])[];

function endingOf(request: RequestRecord): Rows {
  const { outcome, status, reason, latencyMs, firstTokenMs, upstream, attempts, count } = request;
  return [
    ...(count === 1 ? [] : [
      ["Requests", `${count.toLocaleString("en-US")}: so many were refused alike`] as const,
    ]),
    ["Outcome", <OutcomeBadge outcome={outcome} />],
    ["Status", status === 499 ? "499: the client disconnected" : String(status)],
    ...(reason === null ? [] : [["Reason", <Reason reason={reason} />] as const]),
    ["First token", msText(firstTokenMs)],
    ["Total", msText(latencyMs)],
    ...(upstream === null ? [] : [["Upstream", upstream] as const]),
    ["Attempts", String(attempts)],
  ];
}

const { insufficient_funds, authorization_required, daily_cap, project_limit, held_by_running } =
  refusalReasons;
const refusals: Readonly<Record<string, string>> = {
  [insufficient_funds.code]: "The balance was too small. The user got a link to top up.",
  [authorization_required.code]: "The user had not authorized the project to charge their wallet.",
  [daily_cap.code]: "The wallet’s own limit of the day was reached.",
  [project_limit.code]: "A spending limit of the project or of the user was reached.",
  [held_by_running.code]: "Running requests held the rest of the balance.",
  idempotent_replay: "The stored response to the same idempotency key was sent again.",
};

function Reason({ reason }: { reason: string }) {
  return (
    <>
      <code>{reason}</code>
      <div class="muted small">{ownMember(refusals, reason) ?? callErrorText(reason)}</div>
    </>
  );
}

function callOf(visit: ProjectVisit, request: RequestRecord, keyName: string): Rows {
  const { id, requestId, user, model, endpoint, stream } = request;
  return [
    ["User", user === null ? "none" : <UserLink visit={visit} user={user} />],
    ["Model", model === null ? "none" : <bdi>{model}</bdi>],
    ["Endpoint", stream ? `${endpoint}, streamed` : endpoint],
    ["Key", <bdi>{keyName}</bdi>],
    ["X-Request-Id", <code>{requestId}</code>],
    ...(requestId === id ? [] : [["Id in events", <code>{id}</code>] as const]),
  ];
}

function costOf(visit: ProjectVisit, request: RequestRecord): Rows {
  const { inputTokens, cachedTokens, outputTokens, cost, upstreamCost, activityId, user } = request;
  const { currency } = visit.project;
  const [paid, bought] = [fromDecimal(cost), upstreamCost && fromDecimal(upstreamCost)];
  const count = (value: number) => value.toLocaleString("en-US");
  return [
    ["Input tokens", count(inputTokens)],
    ...(cachedTokens === 0 ? [] : [["of them cached", count(cachedTokens)] as const]),
    ["Output tokens", count(outputTokens)],
    ["Charged", <ExactMoney amount={paid} currency={currency} />],
    ...(bought === null || bought === "" ? [] : [
      ["Upstream cost", <ExactMoney amount={bought} currency={currency} />] as const,
      ["Margin", <ExactMoney amount={toAmount(paid - bought)} currency={currency} />] as const,
    ]),
    [
      "Ledger entry",
      activityId === null || user === null
        ? "none: nothing was charged"
        : <a href={`${addressOf(visit, user)}#${activityId}`}>{activityId}</a>,
    ],
  ];
}

function Events({ visit: { here }, request: { outcome }, logs, isWhole }: {
  visit: ProjectVisit;
  request: RequestRecord;
  logs: readonly LogEntry[];
  isWhole: boolean;
}) {
  return (
    <Card title="Events" note="Deliveries to your webhooks">
      <Table
        caption={isWhole
          ? "Newest first"
          : "Newest first; only the last deliveries of that time were searched"}
        columns={["When", "Event", { title: "Status", lead: true }]}
        rows={logs.map(({ id, createdAt, event, status }) => [
          <a href={here(`/deliveries/${id}`)}>
            <TimeCell at={createdAt} as="stamp" />
          </a>,
          <code>{event?.type ?? "no longer stored"}</code>,
          <Status status={status} />,
        ])}
        empty={outcome === "refused"
          ? "No event names this request. The event of a minute’s refusals names only the last one."
          : "No event of this request was sent to a webhook."}
      />
    </Card>
  );
}
