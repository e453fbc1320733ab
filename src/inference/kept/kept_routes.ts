import { endpoints } from "../../base/endpoints.ts";
import { ApiError, badRequest } from "../../base/errors.ts";
import type { Handler, Incoming } from "../../base/handler.ts";
import { corsHeaders, textResponse } from "../../base/response.ts";
import type { UpstreamRequest } from "../../deps.ts";
import { endUser } from "../../projects/end_user.ts";
import { askUpstream } from "../../upstreams/ask.ts";
import { readUpstreamError } from "../../upstreams/error_body.ts";
import { noUpstream, toCallerError } from "../../upstreams/errors.ts";
import { findKeptResponse, forgetResponse } from "./kept_responses.ts";
import { rateLimitedError } from "../admit/rate_limiter.ts";
import type { InferenceServices } from "../services.ts";

/** What can be done with a response that the upstream keeps. */
export interface KeptOperation {
  method: UpstreamRequest["method"];
  /** What follows the response's id in the path: `/input_items`. */
  suffix: string;
}

/** Query parameters that are passed on. */
const passedQuery = ["include", "limit", "order", "after", "before"];

/**
 * Serves one operation on a response that the upstream keeps for its user, free of charge. Throws
 * 404 for a response that is unknown or another user's: the two cannot be told apart.
 */
export function createKeptHandler(
  services: Pick<InferenceServices, "auth" | "deps" | "rateLimiter" | "findUpstreamNamed">,
  { method, suffix }: KeptOperation,
  { reservedUsers }: { reservedUsers?: ReadonlySet<string> } = {},
): Handler {
  return async (incoming) => {
    const { request, requestId } = incoming;
    const { auth, deps, rateLimiter, findUpstreamNamed } = services;
    const caller = await auth.caller(request, "chat");
    const { key, snapshot: { project } } = caller;
    const segment = reservedUsers && incoming.path.split("/")[2];
    const path = segment && reservedUsers ? { segment, reserved: reservedUsers } : undefined;
    const user = endUser(caller, request, { path, query: incoming.query("user") });
    const search = searchOf(incoming);
    const permit = rateLimiter.acquire(key.id, project.limits.key);
    if ("limited" in permit) throw rateLimitedError(permit.limited);
    try {
      const id = incoming.param("responseId");
      const kept = await findKeptResponse(deps, { projectId: project.id, user }, id);
      if (!kept) throw responseNotFound(id);
      if (kept.hasTurn) throw notKeptByUpstream(id, method);
      const upstream = await findUpstreamNamed(project, kept.upstream ?? null);
      if (!upstream) throw noUpstream(deps.config);
      const at = `${endpoints.responses.path}/${encodeURIComponent(id)}${suffix}${search}`;
      const { status, text } = await askUpstream(deps, upstream, {
        method,
        path: at,
        id: requestId,
      });
      const isGone = method === "DELETE" && (status === 200 || status === 404);
      if (isGone) await forgetResponse(deps, project.id, id);
      if (status !== 200) throw toCallerError(readUpstreamError(status, text), null);
      const type = { "content-type": "application/json", "x-request-id": requestId };
      return textResponse(200, text, { ...corsHeaders, ...type });
    } finally {
      permit.release();
    }
  };
}

function searchOf({ request, query }: Incoming): string {
  if (query("stream") === "true") {
    throw badRequest("stream", "'stream' is not supported for a response that has ended.");
  }
  const given = new URL(request.url).searchParams;
  const passed = new URLSearchParams();
  for (const [name, value] of given) {
    if (!passedQuery.includes(name.replace(/\[\]$/, ""))) continue;
    if (value === "") throw badRequest(name, `'${name}' must not be empty.`);
    passed.append(name, value);
  }
  return passed.size > 0 ? `?${passed}` : "";
}

function responseNotFound(id: string): ApiError {
  return new ApiError(404, {
    message: `Response with id '${id.slice(0, 128)}' not found.`,
    code: "not_found",
    param: "response_id",
  });
}

function notKeptByUpstream(id: string, method: string): ApiError {
  return new ApiError(404, {
    message: `Response with id '${id}' is known for 'previous_response_id' only: this upstream ` +
      `keeps no responses, so that ${method} is not possible.`,
    code: "not_found",
    param: "response_id",
  });
}
