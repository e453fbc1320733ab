import { errorFields } from "../base/errors.ts";
import type { Incoming } from "../base/handler.ts";
import type { JsonObject } from "../base/json.ts";
import { parseWith, readQuery } from "../base/request.ts";
import type { Deps } from "../deps.ts";
import { listEntries } from "../ledger/activities.ts";
import { listAllUsers } from "../ledger/users.ts";
import { byOperator, listActions, recordAction } from "../projects/audit.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import { type AdminGuard, checkId } from "../projects/admin_guard.ts";
import type { Project } from "../projects/schema.ts";
import type { Listing } from "../store/listing.ts";
import { listDeliveries } from "../webhooks/delivery/list_deliveries.ts";
import type { ExportKind } from "./kinds.ts";
import { type ExportQuery, exportQuerySchema } from "./schema.ts";
import { exportStream } from "./stream.ts";
import { listEvents } from "../events/outbox.ts";
import { holdsEndedBy } from "../ledger/hold_end.ts";

interface ExportDeps {
  deps: Deps;
  adminGuard: AdminGuard;
  projectCache: ProjectCache;
}

/** `GET /v1/admin/projects/{id}/export`: all records of one kind, as JSON lines or CSV. */
export function exportRoutes({ deps, adminGuard, projectCache }: ExportDeps) {
  const { kv, log } = deps;
  const listings: Record<ExportKind, (project: Project) => Listing> = {
    entries: (project) => listEntries(kv, project),
    users: (project) => listAllUsers(kv, project, () => holdsEndedBy(deps)),
    events: ({ id }) => listEvents(kv, id),
    deliveries: ({ id }) => listDeliveries(kv, id),
    audit: ({ id }) => listActions(kv, id),
  };

  return {
    exportRecords: adminGuard(async (incoming: Incoming) => {
      const { requestId } = incoming;
      const query = parseWith(exportQuerySchema, readQuery(incoming.request));
      const { project } = await projectCache.refresh(
        checkId(incoming.param("projectId"), "project"),
      );
      const listing = listings[query.what](project);
      const body = await exportStream(listing, query, (error) => {
        log("error", "export_failed", { requestId, ...errorFields(error) });
      });
      const by = byOperator("api", incoming.address());
      const about = { target: query.what, detail: { project: project.id, ...detailOf(query) } };
      // A trail that grew by its own export would never be exported to its end.
      const trail = query.what === "audit" ? null : project.id;
      await recordAction(deps, trail, { by, action: "data.exported", ...about });
      return new Response(body, {
        headers: {
          "content-type": query.format === "csv" ? "text/csv; charset=utf-8" : "application/jsonl",
          "cache-control": "no-store",
          "x-request-id": requestId,
        },
      });
    }),
  };
}

/** What the audit trail says of an export: not its position, which may name a user. */
function detailOf({ format, from, to, after }: ExportQuery): JsonObject {
  const timeOf = (name: string, ms: number | undefined) =>
    ms === undefined ? {} : { [name]: new Date(ms).toISOString() };
  const continued = after === undefined ? {} : { continued: true };
  return { format, ...timeOf("from", from), ...timeOf("to", to), ...continued };
}
