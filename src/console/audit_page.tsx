/** @jsxImportSource @hono/hono/jsx */
import { notFound } from "../base/errors.ts";
import { isObject, type Json } from "../base/json.ts";
import type { Handler } from "../base/handler.ts";
import { type AuditRow, listAudit } from "../projects/audit.ts";
import type { ConsoleGuard } from "./guard.tsx";
import { Pager, Table, TimeCell } from "../pages/parts.tsx";
import type { ConsoleDeps } from "./console_deps.ts";

const rowsPerPage = 50;

/** A project's audit trail, newest first. */
export function auditPage(guard: ConsoleGuard, { deps }: ConsoleDeps): Handler {
  return guard.project(async ({ project, incoming, here, page }) => {
    const cursor = incoming.query("cursor");
    const trail = await listAudit(deps.kv, project.id, { limit: rowsPerPage, cursor });
    return page("Audit trail", <Trail {...trail} cursor={cursor} address={here("/audit")} />, {
      section: "/audit",
    });
  });
}

/** The trail of actions that concern no single project, for the operator. */
export function instanceAuditPage(guard: ConsoleGuard, { deps }: ConsoleDeps): Handler {
  return guard.signedIn(async ({ session, incoming, at, page }) => {
    if (session.projectId !== null) throw notFound("page");
    const cursor = incoming.query("cursor");
    const trail = await listAudit(deps.kv, null, { limit: rowsPerPage, cursor });
    const address = at("/audit");
    return page("Audit trail of the instance", <Trail {...trail} {...{ cursor, address }} />);
  });
}

function Trail({ actions, nextCursor, cursor, address }: {
  actions: AuditRow[];
  nextCursor: string | null;
  cursor: string | undefined;
  address: string;
}) {
  return (
    <>
      <Table
        caption="Changes by owners and operators, newest first; times in UTC"
        columns={["Time", "Action", "Target", "Actor", "Details"]}
        rows={actions.map(({ at, action, target, actor, via, address, detail }) => [
          <TimeCell at={at} />,
          <code>{action}</code>,
          <code>
            <bdi>{target}</bdi>
          </code>,
          [
            `${whoIs(actor)}, ${via === "console" ? "in the console" : "by the API"}`,
            ...(address === undefined ? [] : [`from ${address}`]),
          ].join(", "),
          <Detail detail={detail} />,
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

function whoIs({ type, suffix }: AuditRow["actor"]): string {
  return type === "operator" ? "Operator" : `Key …${suffix ?? ""}`;
}

function Detail({ detail }: Pick<AuditRow, "detail">) {
  return (
    <ul class="exact changes">
      {Object.entries(detail).map(([name, value]) => (
        <li>
          <bdi>{name}: {inWords(value)}</bdi>
        </li>
      ))}
    </ul>
  );
}

/** A change as "2.50 → 3.00", and any other value as it is. */
function inWords(value: Json): string {
  if (isObject(value) && "from" in value && "to" in value) {
    return `${asText(value.from ?? null)} → ${asText(value.to ?? null)}`;
  }
  return asText(value);
}

function asText(value: Json): string {
  if (value === null) return "none";
  if (Array.isArray(value)) return value.map(asText).join(", ");
  return typeof value === "string" ? value : JSON.stringify(value);
}
