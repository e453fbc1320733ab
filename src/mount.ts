import { type Context, Hono } from "@hono/hono";
import { type AccessLog, createAccessLog } from "./access_log.ts";
import { BodyBudget } from "./base/body_budget.ts";
import { ApiError, badRequest, errorFields, internalError, overloaded } from "./base/errors.ts";
import type { Handler, Incoming } from "./base/handler.ts";
import { createFindClient, networkOf } from "./base/client_address.ts";
import { createBodyDeadline, waitInPlace } from "./base/deadline.ts";
import { bodyDeadlineMs, strangersBodyDeadlineMs } from "./base/limits.ts";
import { PlaceLimiter } from "./base/place_limiter.ts";
import { sizesOf, type StrangersGroup } from "./base/shared_budgets.ts";
import type { HttpMethod } from "./base/endpoint_doc.ts";
import { createRequestPath, invalidHostPath } from "./base/request_path.ts";
import { callerRequestId, requireUtf8Query } from "./base/request.ts";
import {
  corsHeaders,
  errorResponse,
  measureBody,
  withUnknownLength,
  type WriteErrorBody,
} from "./base/response.ts";
import type { Deps, LogFields } from "./deps.ts";
import { refusePath, type RoutesAt } from "./refuse_path.ts";
import { unservedWords } from "./unserved.ts";

const knownMethods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** One route: its handlers by method, and what holds for all of them. */
export interface Route extends Partial<Record<HttpMethod, Handler>> {
  /** Pages of any origin may call it. */
  cors?: true;
  /** Path parameters that the log must not show: they open a page, or name a person. */
  secretParams?: readonly string[];
  /**
   * Bodies are read before the sender is known: they get a shorter deadline, and wait in the places
   * of this group.
   */
  strangers?: StrangersGroup;
  /** Errors have another body than OpenAI's. */
  errorBody?: WriteErrorBody | undefined;
  /** A header with the request's id, besides `x-request-id`. */
  requestIdHeader?: string | undefined;
  /** Answered also when the service is full; not counted as load. */
  probe?: true;
}

/** Every route by its path, whose parameters are written `:name`, and `*` for a rest. */
export type Routes = Record<string, Route>;

const preflightHeaders = {
  ...corsHeaders,
  "access-control-allow-methods": "GET, POST, DELETE, OPTIONS",
  "access-control-allow-headers": "*, authorization",
  "access-control-max-age": "86400",
};

const preflight: Handler = ({ requestId }) => {
  const headers = { ...preflightHeaders, "x-request-id": requestId };
  return new Response(null, { status: 204, headers });
};

/** What the process is handling now. */
export interface Load {
  /** Requests whose handler runs, without probes. */
  requests: number;
  /** Streams whose handler has returned. */
  streams(): number;
  /**
   * Set once the process is about to stop: responses then close their connections. It has the time
   * of the last request since then, by `clock.elapsed`; probes do not count.
   */
  stopping: { requestedAt: number } | null;
}

/**
 * Serves the routes. Other methods of a path get 405 and unknown paths 404, both by way of
 * `notFound`. Paths without a parameter are tried first, and cost one look into a table.
 */
export function mount(
  deps: Deps,
  routes: Routes,
  { load, notFound }: { load: Load; notFound(refuse: Handler): Handler },
): Pick<Hono, "fetch"> & Pick<AccessLog, "flush"> {
  const getPath = createRequestPath();
  const fixed = new Hono({ getPath });
  const varied = new Hono({ getPath });
  const accessLog = createAccessLog(deps);
  const serve = createServe(deps, load, accessLog);
  for (const [path, route] of Object.entries(routes)) {
    const hono = /[:*]/.test(path) ? varied : fixed;
    const { cors, secretParams = [], strangers, errorBody, ...others } = route;
    const { requestIdHeader, probe, ...handlers } = others;
    const options = {
      route: path,
      cors,
      strangers,
      errorBody,
      requestIdHeader,
      probe,
      maskPath: pathMask(path, secretParams),
    };
    for (const [method, handler] of Object.entries(handlers)) {
      hono.on(method, path, serve({ ...options, method }, handler));
    }
    if (cors) hono.on("OPTIONS", path, serve({ ...options, method: "OPTIONS" }, preflight));
  }
  fixed.notFound(({ req, env }) => varied.fetch(req.raw, env));
  const maskUnknown = unknownPathMask(routes);
  const routesAt: RoutesAt = (path) =>
    new Map(
      knownMethods.flatMap((method): [string, Route][] =>
        [fixed, varied].flatMap(({ router }) => {
          const [matches] = router.match(method === "HEAD" ? "GET" : method, path);
          const route = routes[matches[0]?.[0][1].path ?? ""];
          return route ? [[method, route]] : [];
        })
      ),
    );
  const endpoints = Object.keys(routes).filter((path) => isApiPath(path) && !/[:*]/.test(path));
  const places = { routesAt, endpoints, served: wordsBelowV1(routes) };
  varied.notFound((context) => {
    const { method, path, raw: { headers } } = context.req;
    const options = { route: "other", method, maskPath: maskUnknown };
    if (path === invalidHostPath) return serve(options, invalidHost)(context);
    const { refuse, isUnknown, ...refused } = refusePath({ path, headers }, places);
    const isPreflight = method === "OPTIONS" && headers.has("access-control-request-method");
    const handler = isPreflight && isUnknown ? preflight : notFound(refuse);
    return serve({ ...options, ...refused }, handler)(context);
  });
  const { fetch } = fixed;
  return {
    flush: accessLog.flush,
    fetch: (request, env) =>
      request.method === "HEAD" ? withUnknownLength(fetch(request, env)) : fetch(request, env),
  };
}

/** The words that stand right below `/v1`, which cannot name a user there. */
export function wordsBelowV1(routes: Routes): ReadonlySet<string> {
  const words = Object.keys(routes).map((path) => /^\/v1\/([^/:]+)/.exec(path)?.[1]);
  return new Set(words.filter((word) => word !== undefined));
}

const isApiPath = (path: string) => path.startsWith("/v1/") || path === "/v1";

/** Balances and messages stay out of every cache, and no browser takes them for another type. */
function forbidStoring({ headers }: Response): void {
  const given = headers.get("cache-control");
  if (given === null) headers.set("cache-control", "no-store");
  else if (!given.includes("no-store")) headers.set("cache-control", `no-store, ${given}`);
  headers.set("x-content-type-options", "nosniff");
}

/** The caller sends its next request on another connection. */
function closeConnection({ headers }: Response): void {
  headers.set("connection", "close");
}

/** One handler's route, as the server treats it. */
interface ServedRoute {
  /** The route's path, for metrics. */
  route: string;
  method: string;
  cors?: boolean | undefined;
  strangers?: StrangersGroup | undefined;
  errorBody?: WriteErrorBody | undefined;
  requestIdHeader?: string | undefined;
  probe?: boolean | undefined;
  /** A path as the log may show it. */
  maskPath(path: string): string;
}

type Begun = Pick<Incoming, "requestId" | "startedAt" | "inTime" | "note" | "bodies">;

/** Runs handlers. The one place where an error becomes a response, and is logged. */
function createServe(deps: Deps, load: Load, accessLog: AccessLog) {
  const { clock, config, metrics, tracing } = deps;
  const findClient = createFindClient(config.trustedProxies);
  const addressOf = ({ env, req }: Context) =>
    findClient(peerOf(env), req.raw.headers.get("x-forwarded-for"));
  const refused = () => metrics.refusals.overloaded.add();
  const callersBodies = new BodyBudget(config.bodiesBytesMax, refused);
  const strangers = createStrangers(deps, refused);
  const callerDeadline = createBodyDeadline(clock, bodyDeadlineMs);

  function requireCapacity() {
    if (load.requests + load.streams() <= config.requestsMax) return;
    refused();
    throw overloaded();
  }

  function answer(context: Context, begun: Begun, handler: Handler) {
    const { path, raw: request } = context.req;
    const { requestId, startedAt, inTime, note, bodies } = begun;
    return handler({
      request,
      requestId,
      startedAt,
      path,
      address: () => addressOf(context),
      param: (name) => context.req.param(name) ?? "",
      query: (name) => requireUtf8Query(request, name, context.req.query(name)),
      inTime,
      note,
      bodies,
    });
  }

  return (served: ServedRoute, handler: Handler) => {
    const { route, method, cors, errorBody, requestIdHeader, maskPath } = served;
    const counted = metrics.requests(route, method);
    const isCounted = !served.probe;
    const group = served.strangers;
    const bodies = group ? strangers.bodies : callersBodies;
    return async (context: Context): Promise<Response> => {
      const { raw: request } = context.req;
      const requestId = callerRequestId(request) ?? deps.id("req");
      const startedAt = clock.elapsed();
      const traceId = tracing?.request(request.method, route) ?? undefined;
      let noted: LogFields | undefined;
      const note = (fields: LogFields) => void (noted = noted ? { ...noted, ...fields } : fields);
      const inTime = group
        // A page that says so has no code.
        ? strangers.inTime(group, networkOf(addressOf(context)), () => note({ code: "overloaded" }))
        : callerDeadline;
      const log = (status: number, fields?: LogFields) => {
        const elapsedMs = clock.elapsed() - startedAt;
        counted.seen(status, elapsedMs);
        const { method } = request;
        const path = maskPath(context.req.path);
        const ms = Math.round(elapsedMs * 10) / 10;
        const address = served.probe ? null : addressOf(context);
        const refused = refusalOf(status, noted?.refused, fields?.code ?? noted?.code);
        const client = address ?? undefined;
        const line = { requestId, traceId, method, path, status, ms, client, ...noted, ...fields };
        if (refused === null) return accessLog.write(status, line);
        accessLog.writeRefused({
          sender: networkOf(address),
          route,
          method,
          status,
          refused,
          isHarmless: refused === "overloaded" && group !== undefined,
          fields: line,
        });
      };
      if (isCounted) load.requests++;
      if (isCounted && load.stopping) load.stopping.requestedAt = startedAt;
      try {
        if (isCounted) requireCapacity();
        const response = await answer(
          context,
          { requestId, startedAt, inTime, note, bodies },
          handler,
        );
        if (isApiPath(context.req.path)) forbidStoring(response);
        if (requestIdHeader) response.headers.set(requestIdHeader, requestId);
        if (load.stopping) closeConnection(response);
        if (request.method === "HEAD") await measureBody(response);
        log(response.status);
        return response;
      } catch (error) {
        const shown = error instanceof ApiError ? error : internalError(error);
        log(shown.status, errorFields(shown));
        const idHeader = requestIdHeader ? { [requestIdHeader]: requestId } : {};
        const response = errorResponse(shown, requestId, {
          headers: { ...(cors ? corsHeaders : {}), ...idHeader },
          writeBody: errorBody,
        });
        forbidStoring(response);
        if (load.stopping) closeConnection(response);
        if (request.method === "HEAD") await measureBody(response);
        return response;
      } finally {
        if (isCounted) load.requests--;
        bodies.free(request);
      }
    };
  };
}

/** Why a request was refused; null where it was not, and where an error of ours is to be seen. */
function refusalOf(status: number, refused: unknown, code: unknown): string | null {
  if (typeof refused === "string") return refused;
  if (status < 400 || (status >= 500 && code !== "overloaded")) return null;
  return typeof code === "string" ? code : String(status);
}

/** How bodies of unknown senders are waited for, and the memory that they may hold. */
function createStrangers(
  { clock, config: { requestsMax, bodiesBytesMax } }: Pick<Deps, "clock" | "config">,
  refused: () => void,
) {
  const deadline = createBodyDeadline(clock, strangersBodyDeadlineMs);
  const placesOf = (group: StrangersGroup) =>
    new PlaceLimiter(sizesOf(group, requestsMax), refused);
  const places: Readonly<Record<StrangersGroup, PlaceLimiter>> = {
    stripe: placesOf("stripe"),
    consoleSignIn: placesOf("consoleSignIn"),
    topUps: placesOf("topUps"),
    wallets: placesOf("wallets"),
  };
  const { all, each } = sizesOf("stripeBodies", bodiesBytesMax);
  return {
    bodies: new BodyBudget(all, refused, each),
    inTime: (group: StrangersGroup, sender: string, full: () => void): Incoming["inTime"] =>
      waitInPlace(deadline, { places: places[group], sender, full }),
  };
}

/** `Deno.serve` passes the connection in what Hono calls the environment. */
function peerOf(env: unknown): string | null {
  const { remoteAddr } = Object(env);
  const hostname = Object(remoteAddr).hostname;
  return typeof hostname === "string" ? hostname : null;
}

/** Masks a route's secret parameters, and a key that someone took for an id. */
function pathMask(route: string, secretParams: readonly string[]): (path: string) => string {
  if (secretParams.length === 0) return maskKeys;
  const secret = secretPattern(route, secretParams);
  return (path) => maskKeys(path.replace(secret, maskGroups));
}

/** An id of this service: a kind, and a ULID. */
const ownId = /^[a-z]{2,6}_[\dA-HJKMNP-TV-Z]{26}$/;

/**
 * Masks what may be secret in a path that no route has: a link with more at its end, and in what
 * looks like a call of the API all but known words and ids, since any other may name a person.
 */
function unknownPathMask(routes: Routes): (path: string) => string {
  const secrets = Object.entries(routes).flatMap(([path, { secretParams }]) =>
    secretParams ? [secretPattern(path, secretParams)] : []
  );
  const literals = Object.keys(routes).flatMap((route) => route.split("/"))
    .filter((segment) => segment !== "" && !/[:*]/.test(segment));
  const known = new Set([...literals, ...unservedWords]);
  const maskSegment = (segment: string) =>
    segment === "" || known.has(segment) || ownId.test(segment) || /^\[\w+\]$/.test(segment)
      ? segment
      : "[other]";
  return (path) => {
    const masked = secrets.reduce((text, secret) => text.replace(secret, maskGroups), path);
    const segments = masked.split("/");
    const isCall = segments.some((segment) => known.has(segment));
    return maskKeys(isCall ? segments.map(maskSegment).join("/") : masked);
  };
}

/**
 * Finds the values of a route's secret parameters at the start of a path, each in a named group.
 */
function secretPattern(route: string, secretParams: readonly string[]): RegExp {
  const segments = route.split("/").map((segment) => {
    const name = segment.startsWith(":") ? segment.slice(1) : null;
    if (name === null) return segment === "*" ? ".*" : segment.replaceAll(".", "\\.");
    return secretParams.includes(name) ? `(?<${name}>[^/]+)` : "[^/]+";
  });
  return new RegExp(`^${segments.join("/")}(?=/|$)`);
}

/** Replaces the named groups of a match, which stand in the order of the path, by their names. */
function maskGroups(match: string, ...rest: unknown[]): string {
  const groups: Record<string, unknown> = Object(rest.at(-1));
  return Object.entries(groups).reduce(
    (masked, [name, value]) => masked.replace(`/${value}`, `/[${name}]`),
    match,
  );
}

function maskKeys(path: string): string {
  return path.includes("sk_") ? path.replace(/sk_\w+/g, "[key]") : path;
}

const invalidHost: Handler = () => {
  throw badRequest("Host", "'Host' must be a host name or address, with an optional port.");
};
