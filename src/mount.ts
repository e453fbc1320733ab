import { type Context, Hono } from "@hono/hono";
import { ApiError } from "./base/errors.ts";
import type { Handler } from "./base/handler.ts";
import { callerRequestId } from "./base/request.ts";
import { corsHeaders, errorResponse } from "./base/response.ts";
import type { Deps } from "./deps.ts";

type Method = "GET" | "POST" | "PATCH" | "DELETE";
const otherMethods = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Which address leads to which handler, by method. */
export type Routes = Record<string, Partial<Record<Method, Handler>>>;

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

/** Serves the routes: each address answers 405 to other methods, and unknown addresses are 404. */
export function mount(deps: Deps, routes: Routes): Hono {
  const hono = new Hono({ getPath: normalPath });
  for (const [path, methods] of Object.entries(routes)) {
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
