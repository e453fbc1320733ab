import { nearestText } from "./base/edit_distance.ts";
import { ApiError } from "./base/errors.ts";
import type { Handler } from "./base/handler.ts";
import type { WriteErrorBody } from "./base/response.ts";
import { type UnservedEndpoint, unservedEndpointAt } from "./unserved.ts";

/** The routes of a path, by method. */
export type RoutesAt = (path: string) => ReadonlyMap<string, Refusable>;

/** What is served. */
interface ServedPaths {
  routesAt: RoutesAt;
  /** Paths of the API without parameters. */
  endpoints: readonly string[];
  /** The words that stand right below `/v1`. */
  served: ReadonlySet<string>;
}

interface Refusable {
  cors?: true;
  errorBody?: WriteErrorBody | undefined;
  requestIdHeader?: string | undefined;
}

/** How a request is refused that no handler serves. */
interface PathRefusal {
  /** Throws the error, which says what to use in place of the path. */
  refuse: Handler;
  /** Nothing is served at the path, by any method. */
  isUnknown: boolean;
  /** Pages of any origin can read why. */
  cors: boolean;
  errorBody?: WriteErrorBody | undefined;
  requestIdHeader?: string | undefined;
}

const noRoutes: ReturnType<RoutesAt> = new Map();
/** The longest tail of a path that is looked up. */
const segmentsMax = 8;

/**
 * Finds out why no handler serves a path: an endpoint that is not served at all, a wrong base URL,
 * a wrong method, a WebSocket, or a slip in the path of one of the endpoints.
 */
export function refusePath(
  { path, headers }: { path: string; headers: Headers },
  { routesAt, endpoints, served: words }: ServedPaths,
): PathRefusal {
  const unserved = unservedEndpointAt(path, words);
  const served = unserved ? noRoutes : routesAt(path);
  const isUnknown = served.size === 0;
  const meant = isUnknown && !unserved ? routesMeant(path, routesAt) : served;
  const routes = [...meant.values()];
  const isAnthropic = unserved?.api === "anthropic" || headers.has("anthropic-version");
  const isWebSocket = headers.get("upgrade")?.toLowerCase() === "websocket";
  const refuse = (): Handler => {
    if (isWebSocket && (unserved || routes.length > 0)) return webSocketRefused(unserved);
    if (unserved) return notServed(unserved);
    if (isUnknown) {
      return unknownUrl(routes.length > 0 ? baseUrlAdvice(path) : typo(path, endpoints));
    }
    return methodNotAllowed([...served.keys()].join(", "));
  };
  const shown = isAnthropic
    ? routesAt("/v1/messages").get("POST")
    : routes.find(({ errorBody }) => errorBody);
  return {
    refuse: refuse(),
    isUnknown,
    cors: isUnknown || routes.some(({ cors }) => cors),
    errorBody: shown?.errorBody,
    requestIdHeader: shown?.requestIdHeader,
  };
}

/** The routes that the end of the path has below `/v1`: those of a client with a wrong base URL. */
function routesMeant(path: string, routesAt: RoutesAt): ReturnType<RoutesAt> {
  const segments = path.split("/").slice(1);
  for (let start = Math.max(0, segments.length - segmentsMax); start < segments.length; start++) {
    const routes = routesAt(`/v1/${segments.slice(start).join("/")}`);
    if (routes.size > 0) return routes;
  }
  return noRoutes;
}

function typo(path: string, endpoints: readonly string[]): string {
  const meant = nearestText(path, endpoints);
  return meant === null ? "Please check the URL for typos." : `Did you mean ${meant}?`;
}

/** The most likely mistake in a client's base URL. */
function baseUrlAdvice(path: string): string {
  if (/\/messages(\/count_tokens)?$/.test(path)) {
    return "Clients that add /v1/messages themselves, such as Claude Code and Anthropic's SDKs, " +
      "need a base URL without /v1. Vercel's AI SDK needs one that ends in /v1.";
  }
  if (path.startsWith("/v1/v1/")) return "The base URL may contain /v1 twice.";
  return "The base URL must end in /v1, or in /v1/USER.";
}

function notServed({ advice }: UnservedEndpoint): Handler {
  return ({ request, path }) => {
    const message = `${request.method} ${path} is not served here. ${advice}`;
    throw new ApiError(404, { message, code: "unknown_url" });
  };
}

function unknownUrl(advice: string): Handler {
  return ({ request, path }) => {
    const message = `Unknown request URL: ${request.method} ${path}. ${advice}`;
    throw new ApiError(404, { message, code: "unknown_url" });
  };
}

function webSocketRefused(unserved: UnservedEndpoint | null): Handler {
  return ({ path }) => {
    const advice = unserved?.advice ?? "Send the request as an ordinary POST.";
    throw new ApiError(426, {
      message: `WebSockets are not served here: ${path}. ${advice}`,
      code: "websocket_not_supported",
      headers: { upgrade: "HTTP/1.1", connection: "upgrade" },
    });
  };
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
