import { badRequest } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { parseWith, readQuery } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import { readArchived } from "../ledger/archived.ts";
import { byOperator, recordAction } from "../projects/audit.ts";
import { type AdminGuard, checkId } from "../projects/admin_guard.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { Project } from "../projects/schema.ts";
import { balancesToCsv, statementToCsv } from "./csv.ts";
import { readInstant, readSpan } from "./span.ts";
import { balancesQuerySchema, statementQuerySchema } from "./schema.ts";
import { readBalancesAt, readStatement, type Statement } from "./statement.ts";

interface StatementDeps {
  deps: Deps;
  adminGuard: AdminGuard;
  projectCache: ProjectCache;
}

/** The operator's statements of a project, summed from all entries when they are asked for. */
export function statementRoutes(
  { deps, adminGuard, projectCache }: StatementDeps,
): { statement: Handler; balances: Handler } {
  const { kv, clock } = deps;
  const projectOf = async ({ param }: Incoming): Promise<Project> =>
    (await projectCache.refresh(checkId(param("projectId"), "project"))).project;

  async function requireWhole(project: Project, from: number): Promise<void> {
    const archived = await readArchived(kv, project.id);
    if (archived === null || archived.before <= from) return;
    const until = new Date(archived.before).toISOString();
    throw badRequest("from", `Entries before ${until} are archived: 'from' must be later.`);
  }

  /** Reads of all users are in the audit trail, as exports are. */
  async function recordRead(
    { id }: Project,
    { address }: Incoming,
    { what, ...detail }: { what: string; group?: string; format: string },
  ): Promise<void> {
    const by = byOperator("api", address());
    const about = { target: what, detail: { project: id, ...detail } };
    await recordAction(deps, id, { by, action: "data.exported", ...about });
  }

  return {
    statement: adminGuard(async (incoming) => {
      const { group, format, ...query } = parseWith(
        statementQuerySchema,
        readQuery(incoming.request),
      );
      const project = await projectOf(incoming);
      const period = readSpan(query, clock.now());
      await requireWhole(project, period.from);
      const statement = await readStatement(kv, project, { ...period, group });
      await recordRead(project, incoming, { what: "statement", group, format });
      return format === "csv"
        ? csvResponse(statementToCsv(statement), incoming)
        : jsonResponse(200, viewStatement(statement), incoming.requestId, notStored);
    }),
    balances: adminGuard(async (incoming) => {
      const { at, tz, format } = parseWith(balancesQuerySchema, readQuery(incoming.request));
      const project = await projectOf(incoming);
      if (project.mode !== "default") {
        const message = "In the shared mode, balances are in wallets, and not the project's.";
        throw badRequest(null, message, "mode_conflict");
      }
      const instant = at === undefined ? clock.now() + 1 : readInstant("at", at, tz);
      await requireWhole(project, instant);
      const { balances, total } = await readBalancesAt(kv, project, instant);
      await recordRead(project, incoming, { what: "balances", format });
      if (format === "csv") return csvResponse(balancesToCsv(balances, total), incoming);
      const { currency } = project;
      const body = { currency, at: new Date(instant).toISOString(), balances, total };
      return jsonResponse(200, body, incoming.requestId, notStored);
    }),
  };
}

const notStored = { "cache-control": "no-store" };

function viewStatement({ from, to, rows, total, check, ...about }: Statement) {
  return {
    ...about,
    from: new Date(from).toISOString(),
    to: new Date(to).toISOString(),
    rounding: "none",
    rows,
    total,
    check,
  };
}

function csvResponse(text: string, { requestId }: Incoming): Response {
  return new Response(text, {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "cache-control": "no-store",
      "x-request-id": requestId,
    },
  });
}
