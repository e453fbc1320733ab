import { type Context, Hono } from "@hono/hono";
import { BodyBudget } from "./base/body_budget.ts";
import { ApiError, badRequest, loggedFault, overloaded } from "./base/errors.ts";
import type { Handler, Incoming } from "./base/handler.ts";
import { measureBody, withUnknownLength } from "./base/head_response.ts";
import { createBodyDeadline, limitWaitingBodies } from "./base/deadline.ts";
import { bodyDeadlineMs, strangersBodyDeadlineMs, strangersShare } from "./base/limits.ts";
import type { HttpMethod } from "./base/endpoint_doc.ts";
import { createRequestPath, invalidHostPath } from "./base/request_path.ts";
import { callerRequestId, requireUtf8Query } from "./base/request.ts";
import { corsHeaders, errorResponse } from "./base/response.ts";
import type { Deps, LogFields } from "./deps.ts";

const knownMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Which address leads to which handler, by method. */
export type Routes = Record<string, Partial<Record<HttpMethod, Handler>>>;

/** Other origins may call what a browser app needs: chat and models; and read the API document. */
const isOpenToBrowsers = (path: string) =>
  /^\/v1\/(.*\/)?(chat\/completions|models)|^\/openapi\.json$/.test(path);

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

/** What is under way now. */
export interface Load {
  /** Requests whose handler runs, but for probes. */
  requests: number;
  /** The streams that go on after their handler's return. */
  streams(): number;
}

/**
 * Serves the routes: each address answers 405 to other methods, and unknown addresses are 404, both
 * by way of `lost`. Addresses without a parameter come first, and cost one look into a table.
 */
export function mount(
  deps: Deps,
  routes: Routes,
  { load, lost }: { load: Load; lost(refuse: Handler): Handler },
): Pick<Hono, "fetch"> {
  const getPath = createRequestPath();
  const fixed = new Hono({ getPath });
  const varied = new Hono({ getPath });
  const serve = createServe(deps, load);
  for (const [path, methods] of Object.entries(routes)) {
    const hono = /[:*]/.test(path) ? varied : fixed;
    const open = isOpenToBrowsers(path);
    const handlers = open ? { ...methods, OPTIONS: preflight } : methods;
    for (const [method, handler] of Object.entries(handlers)) {
      hono.on(method, path, serve({ route: path, method, open }, handler));
    }
  }
  fixed.notFound(({ req, env }) => varied.fetch(req.raw, env));
  varied.notFound((context) => {
    const { method, path } = context.req;
    const served = { route: "other", method, open: isOpenToBrowsers(path) };
    if (path === invalidHostPath) return serve(served, noHost)(context);
    const isServed = (known: string) =>
      [fixed, varied].some(({ router }) => router.match(known, path)[0].length > 0);
    const allowed = knownMethods.filter((known) => isServed(known === "HEAD" ? "GET" : known));
    const refuse = allowed.length > 0 ? methodNotAllowed(allowed.join(", ")) : unknownUrl;
    return serve(served, lost(refuse))(context);
  });
  const { fetch } = fixed;
  return {
    fetch: (request, env) =>
      request.method === "HEAD" ? withUnknownLength(fetch(request, env)) : fetch(request, env),
  };
}

/** Whoever asks how the process is doing is answered also when nobody else is, and is not counted. */
const isProbe = (route: string) => ["/healthz", "/readyz", "/metrics"].includes(route);

/** Reads a body before it is known who sends it. */
const isForStrangers = (route: string) =>
  /^\/(console\/sign-in|wallet|topup|authorize|v1\/stripe)(\/|$)/.test(route);

/** What is served where; `open` to the pages of other origins. */
interface Served {
  route: string;
  method: string;
  open: boolean;
}

type Begun = Pick<Incoming, "requestId" | "startedAt" | "inTime">;

/** Runs handlers; the one place where what they throw becomes an answer, and where it is logged. */
function createServe(deps: Deps, load: Load) {
  const { clock, config, metrics, tracing } = deps;
  const refused = () => metrics.refusals.overloaded.add();
  const bodies = new BodyBudget(config.bodiesBytesMax, refused);
  const ofCallers = createBodyDeadline(clock, bodyDeadlineMs);
  const ofStrangers = limitWaitingBodies(createBodyDeadline(clock, strangersBodyDeadlineMs), {
    most: Math.ceil(config.requestsMax / strangersShare),
    refused,
  });

  function requireRoom() {
    if (load.requests + load.streams() <= config.requestsMax) return;
    refused();
    throw overloaded();
  }

  async function answer(context: Context, begun: Begun, handler: Handler) {
    const { path, raw: request } = context.req;
    const { requestId, startedAt, inTime } = begun;
    return await handler({
      request,
      requestId,
      startedAt,
      path,
      address: () => addressOf(context.env),
      param: (name) => context.req.param(name) ?? "",
      query: (name) => requireUtf8Query(request, name, context.req.query(name)),
      inTime,
      bodies,
    });
  }

  return ({ route, method, open }: Served, handler: Handler) => {
    const counted = metrics.requests(route, method);
    const isCounted = !isProbe(route);
    const inTime = isForStrangers(route) ? ofStrangers : ofCallers;
    return async (context: Context): Promise<Response> => {
      const { raw: request } = context.req;
      const requestId = callerRequestId(request) ?? deps.id("req");
      const startedAt = clock.elapsed();
      const traceId = tracing?.request(request.method, route) ?? undefined;
      const log = (status: number, fields?: LogFields) => {
        const elapsedMs = clock.elapsed() - startedAt;
        counted.seen(status, elapsedMs);
        const { method } = request;
        const path = withoutSecrets(context.req.path);
        const ms = Math.round(elapsedMs * 10) / 10;
        const level = status >= 500 ? "error" : "info";
        deps.log(level, "request", { requestId, traceId, method, path, status, ms, ...fields });
      };
      if (isCounted) load.requests++;
      try {
        if (isCounted) requireRoom();
        const response = await answer(context, { requestId, startedAt, inTime }, handler);
        if (request.method === "HEAD") await measureBody(response);
        log(response.status);
        return response;
      } catch (error) {
        const fault = error instanceof ApiError ? error : internalError(error);
        log(fault.status, loggedFault(fault));
        const response = errorResponse(fault, requestId, open ? corsHeaders : undefined);
        if (request.method === "HEAD") await measureBody(response);
        return response;
      } finally {
        if (isCounted) load.requests--;
        bodies.free(request);
      }
    };
  };
}

/** `Deno.serve` tells of the connection in what Hono calls the environment. */
function addressOf(env: unknown): string | null {
  const { remoteAddr } = Object(env);
  const hostname = Object(remoteAddr).hostname;
  return typeof hostname === "string" ? hostname : null;
}

/** What opens a page, a key that someone took for an id, and a person's id. */
const secretInPath = [
  [/^\/(topup|authorize)\/.+/, "/$1/[token]"],
  [/sk_\w+/g, "[key]"],
  [/^(\/v1\/admin\/projects\/[^/]+\/users\/)[^/]+/, "$1[user]"],
  [/^\/v1\/(?!chat\/)[^/]+(?=\/(chat\/completions|models)(\/|$))/, "/v1/[user]"],
] as const;

/** A path for the log. */
function withoutSecrets(path: string): string {
  // Nearly all of them are this one.
  if (path === "/v1/chat/completions") return path;
  return secretInPath.reduce((shown, [secret, mark]) => shown.replace(secret, mark), path);
}

function internalError(cause: unknown): ApiError {
  return new ApiError(500, {
    message: "The service failed to handle this request. It has been logged.",
    code: "internal_error",
    cause,
  });
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
    message: `Unknown request URL: ${request.method} ${path}. ${hintAt(path)}`,
    code: "unknown_url",
  });
};

const noHost: Handler = () => {
  throw badRequest("Host", "'Host' must be a host's name or address, and maybe a port.");
};

/** What a client that was set up in a hurry most likely needs to hear. */
function hintAt(path: string): string {
  if (path.startsWith("/v1/v1/")) return "The base URL may have /v1 twice.";
  if (/^\/(models|user)\b|\/(chat\/completions|models)$/.test(path)) {
    return "The base URL has to end in /v1, or in /v1/USER.";
  }
  const isOtherOfOpenAi = /^\/v1\/([^/]+\/)?(responses|completions|embeddings|images|audio)\b/;
  if (!isOtherOfOpenAi.test(path)) return "Please check the URL for typos.";
  return "Of OpenAI's API only chat completions and models are served. A client that offers a " +
    "choice, such as 'Use Responses API', has to be set to chat completions.";
}
