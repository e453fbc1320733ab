import type { Handler } from "../base/handler.ts";
import { jsonResponse } from "../base/response.ts";
import { parseWith, readQuery } from "../base/request.ts";
import type { Deps } from "../deps.ts";
import { type AdminGuard, checkId } from "../projects/admin_guard.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import { listRequests } from "./list.ts";
import type { RequestLog } from "./request_log.ts";
import { requestQuerySchema } from "./schema.ts";
import { csvLine } from "../base/csv.ts";
import { requestCsvColumns, requestLines, viewRequest } from "./view.ts";

interface RequestsDeps {
  deps: Pick<Deps, "kv">;
  adminGuard: AdminGuard;
  projectCache: ProjectCache;
  requestLog: Pick<RequestLog, "flush">;
}

/** `GET /v1/admin/projects/{id}/requests`: the log of requests, newest first, as JSON or CSV. */
export function requestRoutes(
  { deps: { kv }, adminGuard, projectCache, requestLog }: RequestsDeps,
): { listRequests: Handler } {
  return {
    listRequests: adminGuard(async ({ request, requestId, param }) => {
      const projectId = checkId(param("projectId"), "project");
      await projectCache.refresh(projectId);
      const { limit, cursor, ...filter } = parseWith(requestQuerySchema, readQuery(request));
      await requestLog.flush();
      const page = await listRequests(kv, projectId, { limit, cursor, filter });
      const { requests, nextCursor, searchedTo } = page;
      if (!(request.headers.get("accept") ?? "").includes("text/csv")) {
        const body = {
          requests: requests.map(viewRequest),
          nextCursor,
          searchedTo: searchedTo === null ? null : new Date(searchedTo).toISOString(),
        };
        return jsonResponse(200, body, requestId, { "cache-control": "no-store" });
      }
      return new Response(csvLine(requestCsvColumns) + requestLines(requests), {
        headers: {
          "content-type": "text/csv; charset=utf-8",
          "cache-control": "no-store",
          "x-request-id": requestId,
          ...(nextCursor === null ? {} : { "x-next-cursor": nextCursor }),
        },
      });
    }),
  };
}
