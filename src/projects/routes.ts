import { badCursor, badRequest } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import type { Incoming } from "../base/handler.ts";
import { bodyBytesMax } from "../base/limits.ts";
import { parseWith, readJsonBody, readLimit, requireNoProto } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import { checkUserId } from "../base/user_id.ts";
import type { Deps } from "../deps.ts";
import type { ProjectAdmin, RevokeWithMade } from "./admin.ts";
import { byOperator, listAudit, readAuditFilter } from "./audit.ts";
import type { ProjectCache } from "./project_cache.ts";
import { type AdminGuard, checkId } from "./admin_guard.ts";
import { changesByPatch } from "./merge_patch.ts";
import { createKeySchema, createProjectSchema, type Project } from "./schema.ts";
import { listProjects } from "./store.ts";
import { viewKey, viewProject } from "./view.ts";

interface AdminDeps {
  deps: Deps;
  adminGuard: AdminGuard;
  admin: ProjectAdmin;
  projectCache: ProjectCache;
  revokeWithMade: RevokeWithMade;
}

/**
 * The operator's endpoints for projects. They need `ADMIN_KEY`; without one set, they do not exist.
 */
export function projectRoutes(services: AdminDeps) {
  const { admin, deps, projectCache, adminGuard, revokeWithMade } = services;
  const body = async ({ request, inTime }: Incoming) => {
    const { value } = await inTime(readJsonBody(request, bodyBytesMax));
    requireNoProto(value);
    return value;
  };
  const answer = (status: number, value: unknown, { requestId }: Incoming) =>
    jsonResponse(status, value, requestId, { "cache-control": "no-store" });
  const projectOf = (incoming: Incoming) => checkId(incoming.param("projectId"), "project");
  const trailPage = ({ query }: Incoming) => ({
    limit: readLimit(query("limit")),
    cursor: query("cursor"),
    filter: readAuditFilter(query),
  });
  const by = ({ address }: Incoming) => byOperator("api", address());

  return {
    createProject: adminGuard(async (incoming) => {
      const made = await admin.create(
        parseWith(createProjectSchema, await body(incoming)),
        by(incoming),
      );
      return answer(201, { ...made, project: viewProject(made.project) }, incoming);
    }),
    listProjects: adminGuard(async (incoming) => {
      const limit = readLimit(incoming.query("limit"));
      const cursor = incoming.query("cursor");
      if (cursor !== undefined && !isId("pw", cursor)) {
        throw badCursor();
      }
      const found = await listProjects(deps.kv, limit + 1, cursor);
      const nextCursor = found[limit]?.id ?? null;
      const projects = found.slice(0, limit).map(viewProject);
      return answer(200, { projects, nextCursor }, incoming);
    }),
    getProject: adminGuard(async (incoming) => {
      const { project } = await projectCache.refresh(projectOf(incoming));
      return answer(200, { project: viewProject(project) }, incoming);
    }),
    updateProject: adminGuard(async (incoming) => {
      const patch = await body(incoming);
      const changesOf = (current: Project) => changesByPatch(current, patch);
      const project = await admin.update(projectOf(incoming), changesOf, by(incoming));
      return answer(200, { project: viewProject(project) }, incoming);
    }),
    archiveProject: adminGuard(async (incoming) => {
      const project = await admin.archive(projectOf(incoming), by(incoming));
      return answer(200, { project: viewProject(project) }, incoming);
    }),
    createKey: adminGuard(async (incoming) => {
      const settings = parseWith(createKeySchema, await body(incoming));
      for (const field of ["user", "defaultUser"] as const) {
        if (settings[field] !== null) checkUserId(settings[field], field);
      }
      return answer(
        201,
        await admin.createKey(projectOf(incoming), settings, by(incoming)),
        incoming,
      );
    }),
    listKeys: adminGuard(async (incoming) => {
      const { project } = await projectCache.refresh(projectOf(incoming));
      const keys = await admin.keys(project.id);
      return answer(200, { keys: keys.map(viewKey) }, incoming);
    }),
    revokeKey: adminGuard(async (incoming) => {
      const keyId = checkId(incoming.param("keyId"), "API key");
      const withMade = incoming.query("made") ?? "false";
      if (withMade !== "true" && withMade !== "false") {
        throw badRequest("made", "'made' must be true or false.");
      }
      const revoked = [projectOf(incoming), keyId, by(incoming)] as const;
      const { key, made } = withMade === "true"
        ? await revokeWithMade(...revoked)
        : { key: await admin.revokeKey(...revoked), made: [] };
      return answer(200, { revoked: true, key: viewKey(key), made }, incoming);
    }),
    audit: adminGuard(async (incoming) => {
      const { project } = await projectCache.refresh(projectOf(incoming));
      return answer(200, await listAudit(deps.kv, project.id, trailPage(incoming)), incoming);
    }),
    instanceAudit: adminGuard(async (incoming) =>
      answer(200, await listAudit(deps.kv, null, trailPage(incoming)), incoming)
    ),
  };
}
