/** @jsxImportSource @hono/hono/jsx */
import { csvLine } from "../../base/csv.ts";
import { formatAmount, fromDecimal, toAmount, zero } from "../../base/money.ts";
import {
  activityCsvColumns,
  activityLines,
  listProjectActivities,
  type ProjectActivity,
} from "../../ledger/project_activities.ts";
import { FormSelect } from "../../pages/form_parts.tsx";
import { EmptyState, MoneyCell, Pager, Table, TimeCell } from "../../pages/parts.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { activityKindNames } from "../../base/entry_kinds.ts";
import { kindLabels } from "../kind_labels.ts";
import { csvDownload } from "../csv_response.ts";
import type { ConsoleGuard, GuardedHandler, ProjectVisit } from "../guard.tsx";
import { UnbookedPayments } from "../money/unbooked.tsx";
import { unbookedOfProject } from "../../payments/unbooked.ts";
import { readKind } from "./user_activity.tsx";
import { readTimes, TimeFields } from "../times.tsx";
import { addressOf } from "./user_link.tsx";

const section = "/activity";
const perPage = 50;
const csvRowsPerRead = 500;

/** Every movement of money of a project's users, and the same as CSV. */
export function activityPages(guard: ConsoleGuard, { deps }: ConsoleDeps): {
  list: GuardedHandler;
  csv: GuardedHandler;
} {
  function read(
    { project, incoming: { query } }: ProjectVisit,
    limit: number,
    cursor = query("cursor"),
  ) {
    const kind = readKind(query("kind"));
    return listProjectActivities(deps.kv, project, { limit, cursor, kind, ...readTimes(query) });
  }

  return {
    list: guard.project(async (visit) => {
      const { project, here, page, incoming } = visit;
      const unbooked = await unbookedOfProject(deps.kv, project);
      const { activities, nextCursor, searchedTo } = await read(visit, perPage);
      const query = givenQuery(incoming.query);
      const older = new URLSearchParams(query);
      if (nextCursor !== null) older.set("cursor", nextCursor);
      return page(
        "Activity",
        <>
          <UnbookedPayments payments={unbooked} />
          <ActivityFilters visit={visit} />
          <ActivityTable visit={visit} activities={activities} isFiltered={query.size > 0} />
          {searchedTo === null ? null : (
            <p class="muted">
              Searched back to <TimeCell at={searchedTo} />. Continue with “Older”.
            </p>
          )}
          <Pager
            older={nextCursor === null ? null : here(`${section}?${older}`)}
            newest={incoming.query("cursor") === undefined ? null : here(`${section}?${query}`)}
          />
        </>,
        {
          section,
          note: "Deposits, charges and refunds of all users.",
          actions: <a class="button small" href={here(`/activity.csv?${query}`)}>Download CSV</a>,
        },
      );
    }),
    csv: guard.project(async (visit) => {
      const { project: { currency }, incoming } = visit;
      let moved = zero;
      const source = {
        columns: activityCsvColumns,
        cursor: incoming.query("cursor"),
        async read(cursor: string | undefined) {
          const { activities, nextCursor } = await read(visit, csvRowsPerRead, cursor);
          for (const { entry } of activities) moved = toAmount(moved + fromDecimal(entry.delta));
          const text = activityLines(activities, currency);
          return { text, count: activities.length, nextCursor };
        },
        // In the columns of what the balances changed by, and of the currency.
        total: (count: number) =>
          csvLine([
            ...["total", `${count} rows`, null, null, null],
            ...[formatAmount(moved), currency],
          ]),
      };
      return await csvDownload(source, "activity", incoming.requestId);
    }),
  };
}

function givenQuery(query: (name: string) => string | undefined): URLSearchParams {
  const given = new URLSearchParams();
  for (const name of ["kind", "from", "to"]) {
    const value = query(name) ?? "";
    if (value !== "") given.set(name, value);
  }
  return given;
}

function ActivityFilters({ visit: { here, incoming: { query } } }: { visit: ProjectVisit }) {
  return (
    <form method="get" action={here(section)} role="search" class="card filter-card">
      <div class="filters">
        <FormSelect
          name="kind"
          label="Kind"
          value={query("kind") ?? ""}
          options={[
            ["", "All"],
            ...activityKindNames.map((name) => [name, kindLabels[name]] as const),
          ]}
        />
        <TimeFields query={query} />
        <button type="submit">Filter</button>
        {givenQuery(query).size === 0
          ? null
          : <a class="button plain" href={here(section)}>Clear</a>}
      </div>
    </form>
  );
}

function ActivityTable({ visit, activities, isFiltered }: {
  visit: ProjectVisit;
  activities: readonly ProjectActivity[];
  isFiltered: boolean;
}) {
  const { project: { currency } } = visit;
  return (
    <Table
      caption="Newest first"
      columns={[
        "Time",
        { title: "What", phone: "left" },
        { title: "User", phone: "right" },
        { title: "Details", phone: "line" },
        { title: "Amount", number: true, lead: true },
        { title: "Balance after", number: true },
      ]}
      rows={activities.map(({ entry }) => [
        <TimeCell at={entry.createdAt} as="stamp" />,
        kindLabels[entry.kind],
        <a href={`${addressOf(visit, entry.user)}#${entry.id}`}>
          <bdi>{entry.user}</bdi>
        </a>,
        entry.usage?.model ?? "",
        <MoneyCell amount={fromDecimal(entry.delta)} currency={currency} />,
        <MoneyCell amount={fromDecimal(entry.balanceAfter)} currency={currency} balance />,
      ])}
      empty={
        <div class="card">
          <EmptyState
            icon="activity"
            title={isFiltered ? "Nothing matches" : "No activity yet"}
          >
            <p>Deposits, charges and refunds appear here as they are recorded.</p>
          </EmptyState>
        </div>
      }
    />
  );
}
