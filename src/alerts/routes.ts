import type { Handler } from "../base/handler.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import { type AdminGuard, checkId } from "../projects/admin_guard.ts";
import { byOperator } from "../projects/audit.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { Alerts } from "./alerts.ts";
import { viewAlerts } from "./view.ts";

interface AlertRouteDeps {
  deps: Pick<Deps, "sendMail">;
  adminGuard: AdminGuard;
  projectCache: ProjectCache;
  alerts: Alerts;
}

/** A project's alerts, and a test of its e-mails. */
export function alertRoutes(
  { deps: { sendMail }, adminGuard, projectCache, alerts }: AlertRouteDeps,
): { list: Handler; test: Handler } {
  return {
    list: adminGuard(async ({ requestId, param }) => {
      const { project } = await projectCache.refresh(checkId(param("projectId"), "project"));
      const view = viewAlerts(await alerts.read(project.id), {
        isConfigured: sendMail !== null,
        project,
      });
      return jsonResponse(200, view, requestId, { "cache-control": "no-store" });
    }),
    test: adminGuard(async ({ requestId, param, address }) => {
      const { project } = await projectCache.refresh(checkId(param("projectId"), "project"));
      await alerts.sendSample(project, byOperator("api", address()));
      return jsonResponse(200, { sent: true }, requestId, { "cache-control": "no-store" });
    }),
  };
}
