import { ApiError, badRequest } from "../base/errors.ts";
import type { Incoming } from "../base/handler.ts";
import { bodyBytesMax } from "../base/limits.ts";
import { parseWith, readJsonBody, readQuery } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import { type AdminGuard, checkId } from "../projects/admin_guard.ts";
import { byOperator, recordAction } from "../projects/audit.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { Project } from "../projects/schema.ts";
import { beginFile, removeArchived } from "./remove.ts";
import { ageMinMs, archiveBodySchema, archiveQuerySchema } from "./schema.ts";
import { archivableLines } from "./stream.ts";

interface ArchiveDeps {
  deps: Deps;
  adminGuard: AdminGuard;
  projectCache: ProjectCache;
}

/** Moves old entries to sealed files: the caller writes a file, and then says what it has. */
export function archiveRoutes({ deps, adminGuard, projectCache }: ArchiveDeps) {
  const projectOf = async (incoming: Incoming): Promise<Project> => {
    const id = checkId(incoming.param("projectId"), "project");
    const { project } = await projectCache.refresh(id);
    if (project.mode === "shared") throw inWallets();
    return project;
  };

  function requireOld(before: string): number {
    const time = Date.parse(before);
    if (time <= deps.clock.now() - ageMinMs) return time;
    throw badRequest("before", "'before' must be at least 31 days ago.");
  }

  return {
    /** `GET …/archive/entries`: the entries that can be archived, as they are stored. */
    archivable: adminGuard(async (incoming: Incoming) => {
      const { id: projectId } = await projectOf(incoming);
      const query = parseWith(archiveQuerySchema, readQuery(incoming.request));
      const { after = "" } = query;
      const before = requireOld(query.before);
      const by = byOperator("api", incoming.address());
      const about = { target: "archivable", detail: { before: query.before } };
      await recordAction(deps, projectId, { by, action: "data.exported", ...about });
      return new Response(archivableLines(deps.kv, { projectId, before, after }), {
        headers: {
          "content-type": "application/jsonl",
          "cache-control": "no-store",
          "x-request-id": incoming.requestId,
        },
      });
    }),

    /** `POST …/archive/entries`: removes what a sealed file has, and carries it forward. */
    removeArchived: adminGuard(async (incoming: Incoming) => {
      const { id: projectId } = await projectOf(incoming);
      const { value } = await incoming.inTime(readJsonBody(incoming.request, bodyBytesMax));
      const body = parseWith(archiveBodySchema, value);
      requireOld(body.before);
      const by = byOperator("api", incoming.address());
      await beginFile(deps, projectId, { body, by });
      const result = await removeArchived(deps, projectId, body);
      return jsonResponse(200, result, incoming.requestId, { "cache-control": "no-store" });
    }),
  };
}

function inWallets(): ApiError {
  const message = "In the shared mode entries belong to wallets, which serve other projects too. " +
    "They cannot be archived.";
  return badRequest(null, message, "mode_conflict");
}
