/** @jsxImportSource @hono/hono/jsx */
import { notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { type AuditRow, listAudit } from "../projects/audit.ts";
import { auditActor, AuditDetail, auditWords } from "./audit_words.tsx";
import type { ConsoleGuard } from "./guard.tsx";
import { Pager, Table, TimeCell } from "../pages/parts.tsx";
import type { ConsoleDeps } from "./console_deps.ts";

const rowsPerPage = 50;

/** A project's audit trail, newest first. */
export function auditPage(guard: ConsoleGuard, { deps }: ConsoleDeps): Handler {
  return guard.project(async ({ project, incoming, here, page }) => {
    const cursor = incoming.query("cursor");
    const trail = await listAudit(deps.kv, project.id, { limit: rowsPerPage, cursor });
    return page(
      "Audit trail",
      <Trail {...trail} {...{ cursor, here }} address={here("/audit")} />,
      {
        section: "/audit",
      },
    );
  });
}

/** The trail of actions that concern no single project, for the operator. */
export function instanceAuditPage(guard: ConsoleGuard, { deps }: ConsoleDeps): Handler {
  return guard.signedIn(async ({ session, incoming, at, page }) => {
    if (session.projectId !== null) throw notFound("page");
    const cursor = incoming.query("cursor");
    const trail = await listAudit(deps.kv, null, { limit: rowsPerPage, cursor });
    const address = at("/audit");
    const here = () => at("/projects");
    return page("Audit trail of the instance", <Trail {...trail} {...{ cursor, address, here }} />);
  });
}

function Trail({ actions, nextCursor, cursor, address, here }: {
  actions: AuditRow[];
  nextCursor: string | null;
  cursor: string | undefined;
  address: string;
  /** Returns the address of a page of the project. */
  here: (path: string) => string;
}) {
  return (
    <>
      <Table
        caption="Changes by owners and operators, newest first"
        columns={["Time", { title: "What", lead: true }, "Changes", "From"]}
        rows={actions.map((row) => [
          <TimeCell at={row.at} />,
          <>
            {auditActor(row)} {auditWords(row, here)}.
          </>,
          <AuditDetail detail={row.detail} />,
          [
            row.via === "console" ? "Console" : "API",
            ...(row.address === undefined ? [] : [row.address]),
          ].join(", "),
        ])}
        empty="No changes yet."
      />
      <Pager
        older={nextCursor === null ? null : `${address}?cursor=${nextCursor}`}
        newest={cursor === undefined ? null : address}
      />
    </>
  );
}
