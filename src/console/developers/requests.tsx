/** @jsxImportSource @hono/hono/jsx */
import { fromDecimal } from "../../base/money.ts";
import { parseWith } from "../../base/request.ts";
import { FormField, FormSelect } from "../../pages/form_parts.tsx";
import { EmptyState, MoneyCell, Pager, Table, TimeCell } from "../../pages/parts.tsx";
import { listRequests, type RequestPage } from "../../requests/list.ts";
import { requestOutcomes, type RequestRecord } from "../../requests/record.ts";
import { requestCsvColumns, requestLines } from "../../requests/view.ts";
import { requestFilterSchema } from "../../requests/schema.ts";
import type { ConsoleDeps } from "../console_deps.ts";
import { csvDownload } from "../csv_response.ts";
import type { ConsoleGuard, GuardedHandler, ProjectVisit } from "../guard.tsx";
import { msText, OutcomeBadge, outcomeLabels } from "./request_parts.tsx";
import { readTimes, TimeFields } from "../times.tsx";
import { UserLink } from "../users/user_link.tsx";

const section = "/requests";
const perPage = 50;
const csvRowsPerRead = 500;
const filters = [
  "outcome",
  "user",
  "model",
  "key",
  "reason",
  "status",
  "id",
  "from",
  "to",
] as const;

/** Every request of a project, and the same as CSV. */
export function requestPages(guard: ConsoleGuard, { deps, requestLog, admin }: ConsoleDeps): {
  list: GuardedHandler;
  csv: GuardedHandler;
} {
  async function read({ project, incoming }: ProjectVisit, limit: number, cursor?: string) {
    const given = givenFilters(incoming.query);
    const { from: _from, to: _to, ...others } = given;
    const { from, to } = readTimes(incoming.query);
    const filter = parseWith(requestFilterSchema, others);
    await requestLog.flush();
    const times = { from: from ?? undefined, to: to ?? undefined };
    const found = await listRequests(deps.kv, project.id, {
      limit,
      cursor,
      filter: { ...filter, ...times },
    });
    return { given, ...found };
  }

  return {
    list: guard.project(async (visit) => {
      const { project, here, page } = visit;
      const { given, ...found } = await read(visit, perPage, visit.incoming.query("cursor"));
      const keys = new Map((await admin.keys(project.id)).map(({ id, name, suffix }) => [
        id,
        name || `…${suffix}`,
      ]));
      const days = project.requestLogDays;
      const query = new URLSearchParams(given);
      return page(
        "Requests",
        <>
          <Filters visit={visit} given={given} keys={keys} />
          <RequestTable {...{ visit, keys, found }} isFiltered={query.size > 0} />
          <SearchedTo found={found} />
          <Pager
            older={found.nextCursor === null
              ? null
              : here(`${section}?${withCursor(query, found.nextCursor)}`)}
            newest={visit.incoming.query("cursor") === undefined
              ? null
              : here(`${section}?${query}`)}
          />
        </>,
        {
          section,
          note: days === 0
            ? "This project keeps no log of requests."
            : `Kept for ${days} days, without prompts and responses.`,
          actions: (
            <>
              <a class="button small" href={here("/live")}>Running now</a>
              <a class="button small" href={here(`/requests.csv?${query}`)}>Download CSV</a>
            </>
          ),
        },
      );
    }),
    csv: guard.project(async (visit) => {
      const source = {
        columns: requestCsvColumns,
        cursor: visit.incoming.query("cursor"),
        async read(cursor: string | undefined) {
          const { requests, nextCursor } = await read(visit, csvRowsPerRead, cursor);
          return { text: requestLines(requests), count: requests.length, nextCursor };
        },
      };
      return await csvDownload(source, "requests", visit.incoming.requestId);
    }),
  };
}

function givenFilters(query: (name: string) => string | undefined): Record<string, string> {
  const given: Record<string, string> = {};
  for (const name of filters) {
    const value = query(name)?.trim() ?? "";
    if (value !== "") given[name] = value;
  }
  return given;
}

function withCursor(query: URLSearchParams, cursor: string): URLSearchParams {
  const next = new URLSearchParams(query);
  next.set("cursor", cursor);
  return next;
}

function Filters({ visit: { here, incoming }, given, keys }: {
  visit: ProjectVisit;
  given: Record<string, string>;
  keys: ReadonlyMap<string, string>;
}) {
  const field = (name: typeof filters[number], label: string) => (
    <FormField name={name} label={label} value={given[name] ?? ""} />
  );
  const more = ["reason", "status", "id", "from", "to"].some((name) => name in given);
  return (
    <form method="get" action={here(section)} role="search" class="card filter-card">
      <div class="filters">
        <FormSelect
          name="outcome"
          label="Outcome"
          value={given.outcome ?? ""}
          options={[
            ["", "All"],
            ...requestOutcomes.map((name) => [name, outcomeLabels[name]] as const),
          ]}
        />
        {field("user", "User")}
        {field("model", "Model")}
        <FormSelect
          name="key"
          label="Key"
          value={given.key ?? ""}
          options={[["", "All"], ...keys]}
        />
        <button type="submit">Filter</button>
        {Object.keys(given).length === 0
          ? null
          : <a class="button plain" href={here(section)}>Clear</a>}
      </div>
      <details open={more}>
        <summary>More filters</summary>
        <div class="filters">
          {field("reason", "Reason")}
          {field("status", "Status")}
          {field("id", "Request id")}
          <TimeFields query={incoming.query} />
        </div>
      </details>
    </form>
  );
}

function RequestTable({ visit, keys, found: { requests, places }, isFiltered }: {
  visit: ProjectVisit;
  keys: ReadonlyMap<string, string>;
  found: RequestPage;
  isFiltered: boolean;
}) {
  const { project: { currency } } = visit;
  return (
    <Table
      caption="Newest first"
      columns={[
        "Time",
        { title: "Outcome", phone: "left" },
        { title: "User", phone: "right" },
        { title: "Model", phone: "left" },
        { title: "Key", phone: "none" },
        { title: "Tokens in / out", number: true, phone: "none" },
        { title: "First token / total", number: true, phone: "none" },
        { title: "Cost", number: true, lead: true },
        { title: "Upstream", number: true, phone: "none" },
        { title: "Request", phone: "right" },
      ]}
      rows={requests.map((request, at) => [
        <TimeCell at={request.at} as="stamp" />,
        <Outcome request={request} />,
        <RequestUser visit={visit} request={request} />,
        <ModelName request={request} />,
        <span class="nowrap">
          {keys.get(request.key) ?? (request.key === "dev" ? "sk_dev" : "deleted")}
        </span>,
        request.inputTokens + request.outputTokens === 0
          ? "–"
          : `${count(request.inputTokens)} / ${count(request.outputTokens)}`,
        `${msText(request.firstTokenMs)} / ${msText(request.latencyMs)}`,
        <MoneyCell amount={fromDecimal(request.cost)} currency={currency} />,
        request.upstreamCost === null
          ? "–"
          : <MoneyCell amount={fromDecimal(request.upstreamCost)} currency={currency} />,
        <RequestId visit={visit} request={request} place={places[at] ?? ""} />,
      ])}
      empty={
        <div class="card">
          <EmptyState
            icon="requests"
            title={isFiltered ? "No request matches" : "No requests yet"}
          >
            <p>
              {isFiltered
                ? "Change the filters, or look further back."
                : "Every request appears here, also refused and failed ones, with its reason."}
            </p>
          </EmptyState>
        </div>
      }
    />
  );
}

const count = (value: number) => value.toLocaleString("en-US");

function Outcome(
  { request: { outcome, status, reason, count: times } }: { request: RequestRecord },
) {
  return (
    <>
      <OutcomeBadge outcome={outcome} />
      {times === 1 ? null : <strong>{` ${count(times)} times`}</strong>}
      {status === 200 ? null : <span class="muted small">{` ${status}`}</span>}
      {reason === null ? null : (
        <div>
          <code>{reason}</code>
        </div>
      )}
    </>
  );
}

function RequestUser(
  { visit, request: { user, count } }: { visit: ProjectVisit; request: RequestRecord },
) {
  if (user === null) return <span class="muted">{count > 1 ? "none, or several" : "none"}</span>;
  return <UserLink visit={visit} user={user} />;
}

function ModelName(
  { request: { model, upstream, attempts, stream, endpoint } }: { request: RequestRecord },
) {
  const more = [
    endpoint === "chat" ? null : endpoint,
    stream ? "streamed" : null,
    upstream && `by ${upstream}`,
    attempts > 1 ? `${attempts} attempts` : null,
  ].filter(Boolean);
  return (
    <>
      {model === null
        ? <span class="muted">none</span>
        : <span class="name" title={model}>{model}</span>}
      {more.length === 0 ? null : <div class="muted small">{more.join(", ")}</div>}
    </>
  );
}

function RequestId({ visit: { here }, request: { id, requestId }, place }: {
  visit: ProjectVisit;
  request: RequestRecord;
  place: string;
}) {
  return (
    <a href={here(`${section}/one?place=${place}`)}>
      <span class="hidden">Request</span>{" "}
      <code title={id}>{requestId.length > 10 ? `…${requestId.slice(-8)}` : requestId}</code>
    </a>
  );
}

function SearchedTo({ found: { searchedTo } }: { found: RequestPage }) {
  if (searchedTo === null) return null;
  return (
    <p class="muted">
      Searched back to <TimeCell at={searchedTo} />. Continue with “Older”.
    </p>
  );
}
