/** @jsxImportSource @hono/hono/jsx */
import { csvLine } from "../../base/csv.ts";
import { FormSelect } from "../../pages/form_parts.tsx";
import { Pager, Table, TimeCell } from "../../pages/parts.tsx";
import { auditActions, type AuditRow, listAudit, readAuditFilter } from "../../projects/audit.ts";
import type { ApiKey } from "../../projects/schema.ts";
import { auditActor, AuditDetail, auditLabels, auditWords } from "./audit_words.tsx";
import type { ConsoleDeps } from "../console_deps.ts";
import { csvDownload } from "../csv_response.ts";
import {
  type ConsoleGuard,
  type ConsoleVisit,
  type GuardedHandler,
  requireOperator,
} from "../guard.tsx";
import { nameOfKey } from "../developers/key_name.ts";

const section = "/audit";
const interfaces = { console: "Console", api: "API", command: "Command" } as const;
const rowsPerPage = 50;
const csvRowsPerRead = 500;

/** The audit trails: a project's and, for the operator, the instance's own; each also as CSV. */
export function auditPages(guard: ConsoleGuard, { deps, admin }: ConsoleDeps): {
  list: GuardedHandler;
  csv: GuardedHandler;
  instanceList: GuardedHandler;
  instanceCsv: GuardedHandler;
} {
  const read = (
    projectId: string | null,
    { incoming: { query } }: ConsoleVisit,
    { limit = rowsPerPage, cursor = query("cursor") }: { limit?: number; cursor?: string } = {},
  ) => listAudit(deps.kv, projectId, { limit, cursor, filter: readAuditFilter(query) });
  const csv = (projectId: string | null, visit: ConsoleVisit) => {
    const source = {
      columns: csvColumns,
      cursor: visit.incoming.query("cursor"),
      async read(cursor: string | undefined) {
        const page = { limit: csvRowsPerRead, ...(cursor === undefined ? {} : { cursor }) };
        const { actions, nextCursor } = await read(projectId, visit, page);
        return { text: auditLines(actions), count: actions.length, nextCursor };
      },
    };
    return csvDownload(source, "audit", visit.incoming.requestId);
  };
  return {
    list: guard.project(async (visit) => {
      const { project, here, page } = visit;
      const trail = await read(project.id, visit);
      const keys = await admin.keys(project.id);
      const view = { visit, trail, keys, here, address: here(section) };
      return page("Audit trail", <Trail {...view} />, {
        section,
        note: "What owners and operators have changed.",
        actions: <Download {...view} />,
      });
    }),
    csv: guard.project((visit) => csv(visit.project.id, visit)),
    instanceList: guard.signedIn(async (visit) => {
      requireOperator(visit);
      const trail = await read(null, visit);
      const here = () => visit.at("/projects");
      const view = { visit, trail, keys: [], here, address: visit.at(section) };
      return visit.page("Audit trail of the instance", <Trail {...view} />, {
        actions: <Download {...view} />,
      });
    }),
    instanceCsv: guard.signedIn((visit) => {
      requireOperator(visit);
      return csv(null, visit);
    }),
  };
}

interface TrailView {
  visit: ConsoleVisit;
  trail: { actions: AuditRow[]; nextCursor: string | null };
  /** The keys that may have acted. */
  keys: readonly ApiKey[];
  address: string;
  /** Returns the address of a page of the project. */
  here: (path: string) => string;
}

function givenQuery({ incoming: { query } }: ConsoleVisit): URLSearchParams {
  const given = ["action", "actor"].flatMap((name) => {
    const value = query(name) ?? "";
    return value === "" ? [] : [[name, value]];
  });
  return new URLSearchParams(given);
}

function Download({ visit, address }: TrailView) {
  return <a class="button small" href={`${address}.csv?${givenQuery(visit)}`}>Download CSV</a>;
}

function Trail({ visit, trail: { actions, nextCursor }, keys, address, here }: TrailView) {
  const query = givenQuery(visit);
  const older = new URLSearchParams([...query, ["cursor", nextCursor ?? ""]]);
  return (
    <>
      <TrailFilters visit={visit} keys={keys} address={address} />
      <Table
        caption="Newest first"
        columns={["Time", { title: "What", lead: true }, "Changes", "From"]}
        rows={actions.map((row) => [
          <TimeCell at={row.at} as="stamp" />,
          <>
            {auditActor(row)} {auditWords(row, here)}.
          </>,
          <AuditDetail detail={row.detail} />,
          [
            interfaces[row.via],
            ...(row.address === undefined ? [] : [row.address]),
          ].join(", "),
        ])}
        empty={<p class="muted">{query.size === 0 ? "No changes yet." : "No change matches."}</p>}
      />
      <Pager
        older={nextCursor === null ? null : `${address}?${older}`}
        newest={visit.incoming.query("cursor") === undefined ? null : `${address}?${query}`}
      />
    </>
  );
}

function TrailFilters({ visit, keys, address }: Pick<TrailView, "visit" | "keys" | "address">) {
  const { query } = visit.incoming;
  const actions = auditActions.map((name) => [name, auditLabels[name]] as const);
  return (
    <form method="get" action={address} role="search" class="card filter-card">
      <div class="filters">
        <FormSelect
          name="action"
          label="Action"
          value={query("action") ?? ""}
          options={[["", "All"], ...actions]}
        />
        {keys.length === 0 ? null : (
          <FormSelect
            name="actor"
            label="By"
            value={query("actor") ?? ""}
            options={[
              ["", "Anyone"],
              ["operator", "The operator"],
              ["unknown", "Somebody with a wrong key"],
              ...keys.map((key) => [key.id, nameOfKey(key)] as const),
            ]}
          />
        )}
        <button type="submit">Filter</button>
        {givenQuery(visit).size === 0 ? null : <a class="button plain" href={address}>Clear</a>}
      </div>
    </form>
  );
}

const csvColumns = ["id", "at", "action", "target", "actor", "key", "via", "address", "detail"];

function auditLines(actions: readonly AuditRow[]): string {
  return actions.map(({ id, at, action, target, actor, via, address, detail }) =>
    csvLine([
      ...[id, at, action, target, actor.id, actor.suffix ?? null, via, address ?? null],
      JSON.stringify(detail),
    ])
  ).join("");
}
