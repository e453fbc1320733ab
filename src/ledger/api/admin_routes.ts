import { badRequest } from "../../base/errors.ts";
import type { Incoming } from "../../base/handler.ts";
import { bodyBytesMax } from "../../base/limits.ts";
import { parseWith, readJsonBody, readLimit } from "../../base/request.ts";
import { jsonResponse } from "../../base/response.ts";
import { checkUserId } from "../../base/user_id.ts";
import type { Trigger } from "../../events/event.ts";
import { byOperator } from "../../projects/audit.ts";
import type { ProjectCache } from "../../projects/project_cache.ts";
import { type AdminGuard, checkId } from "../../projects/admin_guard.ts";
import type { Project } from "../../projects/schema.ts";
import { readArchived } from "../archived.ts";
import {
  type LedgerDeps,
  readMoneyBody,
  readRefundBody,
  respondActivities,
  respondMoney,
  respondRefund,
} from "./money_responses.ts";
import type { Forget } from "../forget.ts";
import { forgetBodySchema } from "../schema.ts";
import { listUsers, readUser } from "../users.ts";
import { holdsEndedBy } from "../hold_end.ts";

interface AdminDeps extends LedgerDeps {
  adminGuard: AdminGuard;
  projectCache: ProjectCache;
  forget: Forget;
}

/** The operator, as the cause of an event. */
const trigger: Trigger = { source: "api", actorType: "paywall-owner", actorId: "operator" };

/** The operator's endpoints for a project's users. They need `ADMIN_KEY`. */
export function ledgerAdminRoutes(services: AdminDeps) {
  const { adminGuard, projectCache, forget, deps, deps: { kv } } = services;
  const projectOf = async (incoming: Incoming): Promise<Project> =>
    (await projectCache.refresh(checkId(incoming.param("projectId"), "project"))).project;
  const answer = (value: unknown, { requestId }: Incoming, status = 200) =>
    jsonResponse(status, value, requestId, { "cache-control": "no-store" });
  const by = ({ address }: Incoming) => byOperator("api", address());

  const depositOrCharge = (verb: "deposit" | "charge") =>
    adminGuard(async (incoming) => {
      const project = await projectOf(incoming);
      const user = userOf(incoming);
      const body = await readMoneyBody(incoming, verb);
      requireSame(user, body.user);
      return await respondMoney(services, verb, {
        project,
        user,
        body,
        incoming,
        trigger,
        by: by(incoming),
      });
    });

  return {
    listUsers: adminGuard(async (incoming) => {
      const project = await projectOf(incoming);
      const limit = readLimit(incoming.query("limit"));
      const prefix = incoming.query("prefix") ?? "";
      if (prefix !== "") checkUserId(prefix, "prefix");
      const page = {
        limit,
        prefix,
        cursor: incoming.query("cursor"),
        hasEnded: holdsEndedBy(deps),
      };
      return answer(await listUsers(kv, project, page), incoming);
    }),
    getUser: adminGuard(async (incoming) => {
      const project = await projectOf(incoming);
      const query = { user: userOf(incoming), hasEnded: holdsEndedBy(deps) };
      return answer({ user: await readUser(kv, project, query) }, incoming);
    }),
    activities: adminGuard(async (incoming) => {
      const project = await projectOf(incoming);
      const user = userOf(incoming);
      await readUser(kv, project, { user, hasEnded: holdsEndedBy(deps) });
      return await respondActivities(services, { project, user, incoming });
    }),
    forget: adminGuard(async (incoming) => {
      const { id: projectId } = await projectOf(incoming);
      const user = userOf(incoming);
      const { value } = await incoming.inTime(readJsonBody(incoming.request, bodyBytesMax));
      const { forfeit } = parseWith(forgetBodySchema, value);
      const forgetting = await forget.run({ projectId, user, forfeit }, by(incoming));
      const archived = await readArchived(kv, projectId);
      const archivedUntil = archived && new Date(archived.before).toISOString();
      return answer(
        { ...forgetting, archivedUntil },
        incoming,
        forgetting.status === "done" ? 200 : 202,
      );
    }),
    deposit: depositOrCharge("deposit"),
    charge: depositOrCharge("charge"),
    refund: adminGuard(async (incoming) => {
      const project = await projectOf(incoming);
      const user = userOf(incoming);
      const body = await readRefundBody(incoming);
      requireSame(user, body.user);
      return await respondRefund(services, {
        project,
        user,
        body,
        incoming,
        trigger,
        by: by(incoming),
      });
    }),
  };
}

/** The path segment after `users/`, still encoded. */
const userSegment = /\/users\/([^/]+)/;

/**
 * Returns the user that the path names: strict UTF-8, percent-encoded. No path can hold `.` or
 * `..`, which clients remove before they send a request: `-` stands for the user in the query.
 * Throws 400.
 */
function userOf({ path, query }: Incoming): string {
  const [, segment = ""] = userSegment.exec(path) ?? [];
  const named = query("user");
  if (named !== undefined) {
    if (segment === "-") return checkUserId(named, "user");
    throw badRequest("user", "The query may name a user only if the path has '-' for the user.");
  }
  try {
    return checkUserId(decodeURIComponent(segment), "user");
  } catch (error) {
    if (!(error instanceof URIError)) throw error;
    throw badRequest("user", "The user in the path is not well-formed UTF-8.");
  }
}

/**
 * Throws 400 where a body names another user than the path. A body may name one, as on the public
 * endpoints.
 */
function requireSame(user: string, named: unknown): void {
  if (named === undefined || named === null || named === user) return;
  throw badRequest("user", "'user' differs from the user in the path.");
}
