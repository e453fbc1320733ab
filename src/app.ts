import { type Context, Hono } from "@hono/hono";
import { ApiError } from "./base/errors.ts";
import type { Handler } from "./base/handler.ts";
import { callerRequestId } from "./base/request.ts";
import { errorResponse } from "./base/response.ts";
import { corsHeaders } from "./chat/reply.ts";
import { createModels } from "./chat/models.ts";
import { sweepReplays } from "./chat/replay.ts";
import { chatRoutes } from "./chat/routes.ts";
import { createRunning, type Running } from "./chat/running.ts";
import { createUpstreams } from "./chat/upstreams.ts";
import type { Deps } from "./deps.ts";
import { healthRoutes } from "./health.ts";
import { createAccountQueue } from "./ledger/account_queue.ts";
import { createHolds } from "./ledger/hold.ts";
import { createPost } from "./ledger/post.ts";
import { ledgerRoutes } from "./ledger/routes.ts";
import { createHoldSweep } from "./ledger/sweep.ts";
import { createLinks } from "./paywall/link.ts";
import { topUpMessage } from "./paywall/message.ts";
import { paywallRoutes } from "./paywall/routes.tsx";
import { createProjectAdmin, type ProjectAdmin } from "./projects/admin.ts";
import { createAnnounce } from "./projects/announce.ts";
import { createAuth } from "./projects/auth.ts";
import { createDirectory } from "./projects/directory.ts";
import { projectRoutes } from "./projects/routes.ts";
import type { Project } from "./projects/schema.ts";
import { sweepMarkers } from "./store/marker_sweep.ts";
import { createSecrets } from "./store/secrets.ts";

/** The whole service, without a socket. */
export interface App {
  fetch(request: Request): Response | Promise<Response>;
  /** The answers under way: a clean stop waits for them. */
  running: Running;
  admin: ProjectAdmin;
  /** Cleans up after dead processes; a bounded part at each call. */
  sweep(): Promise<void>;
}

type Method = "GET" | "POST" | "PATCH" | "DELETE";
const otherMethods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
type Routes = Record<string, Partial<Record<Method, Handler>>>;

/** Puts the rooms together. */
export async function createApp(deps: Deps): Promise<App> {
  const { config, clock } = deps;
  const secrets = await createSecrets(config.secretsKey, deps.randomBytes);
  const directory = createDirectory(deps);
  const auth = createAuth(config, directory);
  const admin = createProjectAdmin(deps, { directory, secrets });
  const queue = createAccountQueue(deps, directory);
  const announce = createAnnounce(deps, directory);
  const post = createPost(deps.kv, queue, announce);
  const holds = createHolds(queue, clock);
  const links = await createLinks({ baseUrl: config.baseUrl, secrets, now: clock.now });
  const running = createRunning(deps, holds);
  const findUpstream = createUpstreams(deps, secrets);
  const topUpUrl = (project: Project, user: string) => links.topUp(project, user);
  const offerTopUp = async (project: Project, user: string, amount?: string) => {
    const url = await links.topUp(project, user, amount);
    return { url, message: topUpMessage(url) };
  };

  const chatRooms = { deps, auth, holds, running, findUpstream, topUpUrl, announce };
  const hono = mount(deps, {
    chat: chatRoutes(chatRooms, createModels(deps, findUpstream)),
    ledger: ledgerRoutes({ deps, auth, post, offerTopUp }),
    projects: projectRoutes({ deps, auth, admin, directory }),
    paywall: paywallRoutes({ deps, directory, links, post }),
    health: healthRoutes(deps),
  });
  const sweepHolds = createHoldSweep(deps, queue);
  return {
    fetch: hono.fetch,
    running,
    admin,
    async sweep() {
      await sweepHolds();
      await sweepReplays(deps);
      await sweepMarkers(deps);
    },
  };
}

interface Rooms {
  chat: ReturnType<typeof chatRoutes>;
  ledger: ReturnType<typeof ledgerRoutes>;
  projects: ReturnType<typeof projectRoutes>;
  paywall: ReturnType<typeof paywallRoutes>;
  health: ReturnType<typeof healthRoutes>;
}

/** The whole outside of the service: which address leads into which room. */
function routeMap({ chat, ledger, projects, paywall, health }: Rooms): Routes {
  return {
    "/v1/chat/completions": { POST: chat.complete },
    "/v1/:user/chat/completions": { POST: chat.complete },
    "/v1/models": { GET: chat.models },
    "/v1/models/*": { GET: chat.model },
    "/v1/:user/models": { GET: chat.models },

    "/v1/user/balance": { GET: ledger.balance },
    "/v1/user/balance/topup": { GET: ledger.topUp },
    "/v1/user/balance/deposit": { POST: ledger.deposit },
    "/v1/user/charge": { POST: ledger.charge },
    "/v1/user/refund": { POST: ledger.refund },
    "/v1/user/activities": { GET: ledger.activities },

    "/v1/admin/projects": { GET: projects.listProjects, POST: projects.createProject },
    "/v1/admin/projects/:projectId": { GET: projects.getProject, PATCH: projects.updateProject },
    "/v1/admin/projects/:projectId/archive": { POST: projects.archiveProject },
    "/v1/admin/projects/:projectId/keys": { GET: projects.listKeys, POST: projects.createKey },
    "/v1/admin/projects/:projectId/keys/:keyId": { DELETE: projects.revokeKey },

    "/topup/:token": { GET: paywall.showTopUp, POST: paywall.sandboxCheckout },
    "/healthz": { GET: health.healthz },
    "/readyz": { GET: health.readyz },
  };
}

/** Other origins may call what a browser app needs: chat and models. */
const isOpenToBrowsers = (path: string) => /^\/v1\/(.*\/)?(chat\/completions|models)/.test(path);

const preflightHeaders = {
  ...corsHeaders,
  "access-control-allow-methods": "GET, POST, OPTIONS",
  "access-control-allow-headers": "*, authorization",
  "access-control-max-age": "86400",
};

const preflight: Handler = ({ requestId }) => {
  const headers = { ...preflightHeaders, "x-request-id": requestId };
  return new Response(null, { status: 204, headers });
};

function mount(deps: Deps, rooms: Rooms): Hono {
  const hono = new Hono({ getPath: normalPath });
  for (const [path, methods] of Object.entries(routeMap(rooms))) {
    const open = isOpenToBrowsers(path);
    for (const [method, handler] of Object.entries(methods)) {
      hono.on(method, path, endpoint(deps, handler, open));
    }
    if (open) hono.on("OPTIONS", path, endpoint(deps, preflight, open));
    const allowed = [...Object.keys(methods), ...(open ? ["OPTIONS"] : [])];
    // Named one by one: a handler for all methods would be a second match for every request.
    const others = otherMethods.filter((method) => !allowed.includes(method));
    hono.on(others, path, endpoint(deps, methodNotAllowed(allowed.join(", ")), open));
  }
  hono.notFound((context) => endpoint(deps, unknownUrl, false)(context));
  return hono;
}

/** Runs a handler; the one place where what it throws becomes an answer, and where it is logged. */
function endpoint(deps: Deps, handler: Handler, open: boolean) {
  return async (context: Context): Promise<Response> => {
    const request = context.req.raw;
    const requestId = callerRequestId(request) ?? deps.id("req");
    const startedAt = deps.clock.now();
    const { path } = context.req;
    const log = (status: number, fields?: Record<string, unknown>) => {
      const level = status >= 500 ? "error" : "info";
      const { method } = request;
      const ms = deps.clock.now() - startedAt;
      deps.log(level, "request", { requestId, method, path, status, ms, ...fields });
    };
    try {
      const response = await handler({
        request,
        requestId,
        path,
        param: (name) => context.req.param(name) ?? "",
        query: (name) => context.req.query(name),
      });
      log(response.status);
      return response;
    } catch (error) {
      const fault = error instanceof ApiError ? error : internalError(error);
      log(fault.status, { code: fault.code, cause: causeText(fault.cause) });
      return errorResponse(fault, requestId, open ? corsHeaders : undefined);
    }
  };
}

function internalError(cause: unknown): ApiError {
  return new ApiError(500, {
    message: "The service failed to handle this request. It has been logged.",
    code: "internal_error",
    cause,
  });
}

function causeText(cause: unknown): string | undefined {
  if (cause === undefined) return undefined;
  return cause instanceof Error ? cause.stack ?? cause.message : String(cause);
}

function methodNotAllowed(allow: string): Handler {
  return ({ request, path }) => {
    throw new ApiError(405, {
      message: `${request.method} is not allowed for ${path}. Allowed: ${allow}.`,
      code: "method_not_allowed",
      headers: { allow },
    });
  };
}

const unknownUrl: Handler = ({ request, path }) => {
  throw new ApiError(404, {
    message: `Unknown request URL: ${request.method} ${path}. Please check the URL for typos.`,
    code: "unknown_url",
  });
};

/** The path alone; doubled and trailing slashes, which base URLs often bring about, do not count. */
function normalPath(request: Request): string {
  const { url } = request;
  const start = url.indexOf("/", url.indexOf("://") + 3);
  const end = url.slice(start).search(/[?#]/);
  const path = end < 0 ? url.slice(start) : url.slice(start, start + end);
  if (!path.includes("//") && !path.endsWith("/")) return path;
  return path.replace(/\/{2,}/g, "/").replace(/(.)\/$/, "$1");
}
