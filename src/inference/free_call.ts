import type { ModelEndpoint } from "../base/endpoints.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { ApiError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { chatBodyBytesMax } from "../base/limits.ts";
import { readJsonBody } from "../base/request.ts";
import { corsHeaders } from "../base/response.ts";
import { requireActive } from "../projects/active.ts";
import type { Caller } from "../projects/auth.ts";
import { endUser, type PathUser } from "../projects/end_user.ts";
import { requireModel } from "../projects/key_models.ts";
import { userLimitsOf } from "../projects/user_limits.ts";
import { callUpstream, readUpstreamBody } from "../upstreams/client.ts";
import {
  endpointNotServed,
  isReroutable,
  noUpstream,
  upstreamTimeout,
} from "../upstreams/errors.ts";
import type { Upstream } from "../upstreams/upstream.ts";
import { withModel } from "./admit/call_targets.ts";
import type { RequestFormat } from "./format.ts";
import { withoutEmptyUsers } from "./without_empty_users.ts";
import type { FieldPolicy } from "./model_request.ts";
import { rateHeaders, rateLimitedError, withRateHeaders } from "./admit/rate_limiter.ts";
import { passedOn, requireObject } from "./ask/read_whole.ts";
import { refuseRateError, type ReportServices } from "./admit/refuse.ts";
import type { InferenceServices } from "./services.ts";
import { callerDisconnected } from "./caller_left.ts";

/** What a call that costs nothing needs. */
type FreeCallServices =
  & ReportServices
  & Pick<InferenceServices, "auth" | "places" | "rateLimiter" | "findTargets">;

/** A request that costs nothing. */
interface FreeRequest {
  /** Null where the caller leaves it to the upstream. */
  model: string | null;
  /** The field `user`; unchecked. */
  user: unknown;
  /** The body that is passed on. */
  body: JsonObject;
}

/** An endpoint whose calls cost nothing: no price, no hold, no entry. */
export interface FreeFormat
  extends Pick<RequestFormat, keyof ModelEndpoint | "errorBody" | "requestIdHeader"> {
  readonly kind: "free";
  /** Throws 400 for a malformed body, and for fields that the policy refuses. */
  readRequest(body: JsonObject, fields: FieldPolicy): FreeRequest;
}

/** Largest response of such an endpoint, in bytes. */
const responseBytesMax = 8 * 1024 * 1024;

/**
 * The handler of an endpoint that costs nothing: a request with a key and within its rate limits
 * passes on to the upstream, and its response to the caller. A user without money may call it.
 */
export function createFreeCallHandler(
  services: FreeCallServices,
  format: FreeFormat,
  { reservedUsers }: { reservedUsers?: ReadonlySet<string> } = {},
): Handler {
  return async (incoming) => {
    const { request } = incoming;
    const caller = await services.auth.caller(request, "chat");
    const { key, snapshot: { project } } = caller;
    const place = services.places.acquire(project.id, key.id);
    try {
      const segment = reservedUsers && incoming.path.split("/")[2];
      const path = segment && reservedUsers ? { segment, reserved: reservedUsers } : undefined;
      const input = await readInput({ format, incoming, caller });
      return await respondWithin(services, { format, incoming, caller, input, path });
    } finally {
      place.release();
    }
  };
}

async function readInput(
  { format, incoming: { request, inTime, bodies }, caller }: {
    format: FreeFormat;
    incoming: Incoming;
    caller: Caller;
  },
): Promise<FreeRequest> {
  const { key, snapshot: { project } } = caller;
  const share = bodies.shareOf(key.id);
  const { value } = await inTime(readJsonBody(request, chatBodyBytesMax, share));
  const fields = { unknown: project.unknownFields, allowed: project.allowedFields };
  const input = format.readRequest(withoutEmptyUsers(value), fields);
  requireActive(project);
  if (input.model !== null) requireModel(key, input.model);
  return input;
}

interface FreeCall {
  format: FreeFormat;
  incoming: Incoming;
  caller: Caller;
  input: FreeRequest;
  path: PathUser | undefined;
}

/** Responds within the rate limits of the key and the user. Throws 429 beyond them. */
async function respondWithin(services: FreeCallServices, call: FreeCall): Promise<Response> {
  const { caller, incoming: { requestId } } = call;
  const { key, snapshot: { project } } = caller;
  const projectId = project.id;
  const { rateLimiter, deps } = services;
  const id = deps.id("req");
  const user = userIfAny(call);
  const perMinute = user === null ? null : userLimitsOf(project, user).requestsPerMinute;
  const exceeded = user === null
    ? null
    : rateLimiter.exceededByRefusals({ projectId, user }, perMinute);
  if (exceeded && user !== null) await refuseRateError(services, { id, user, caller }, exceeded);
  const permit = rateLimiter.acquire(key.id, project.limits.key);
  if ("limited" in permit) {
    if (user !== null) await refuseRateError(services, { id, user, caller }, permit.limited);
    throw rateLimitedError(permit.limited);
  }
  try {
    // There is no hold that would count it.
    const ofUser = user === null
      ? []
      : [rateLimiter.countRefused({ projectId, user }, { perMinute, count: 1 })];
    const rates = [permit.rateLimits, ...ofUser];
    const bytes = await ask(services, call, id).catch((error) => {
      throw withRateHeaders(error, rates);
    });
    const headers = {
      ...corsHeaders,
      "content-type": "application/json",
      "x-request-id": requestId,
    };
    return new Response(new Uint8Array(bytes), { headers: { ...headers, ...rateHeaders(rates) } });
  } finally {
    permit.release();
  }
}

/** The user, if the request names one: such a call needs none. */
function userIfAny({ caller, incoming: { request }, input, path }: FreeCall): string | null {
  try {
    return endUser(caller, request, { body: input.user, path });
  } catch (error) {
    if (error instanceof ApiError && error.code === "user_required") return null;
    throw error;
  }
}

/** The response of the first target that answers, which is a JSON object. */
async function ask(
  { deps, findTargets }: FreeCallServices,
  { format, incoming: { request }, caller, input }: FreeCall,
  id: string,
): Promise<Uint8Array> {
  const { targets } = await findTargets(caller.snapshot.project, input.model ?? "");
  const controller = new AbortController();
  const { upstreamTimeoutMs } = deps.config;
  const stopDeadline = deps.clock.after(
    upstreamTimeoutMs,
    () => controller.abort(upstreamTimeout(`no response within ${upstreamTimeoutMs} ms`)),
  );
  const onDisconnect = () => controller.abort(callerDisconnected);
  request.signal.addEventListener("abort", onDisconnect);
  try {
    let failure: unknown = noUpstream(deps.config);
    for (const { upstream, model } of targets) {
      const there = input.model === null ? input : withModel(input, model);
      const { signal } = controller;
      try {
        return await askOne({ format, input: there, upstream, id, signal });
      } catch (error) {
        failure = error;
        if (!isReroutable(error) || signal.aborted) break;
      }
    }
    throw failure;
  } finally {
    stopDeadline();
    request.signal.removeEventListener("abort", onDisconnect);
  }
}

async function askOne(asked: Parameters<typeof upstreamCall>[0]): Promise<Uint8Array> {
  const { response } = await callUpstream(upstreamCall(asked), null);
  const bytes = await readUpstreamBody(response.body, responseBytesMax, asked.signal);
  return requireObject(passedOn(bytes, asked.upstream.apiKey)).start;
}

function upstreamCall(
  { format, input: { model, body }, upstream, id, signal }: Pick<FreeCall, "format" | "input"> & {
    upstream: Upstream;
    id: string;
    signal: AbortSignal;
  },
) {
  return {
    upstream,
    endpoint: () => format,
    input: { model: model ?? "", stream: false, maxTokens: null, thinkingBudget: null, body },
    targets: [{ format: format.name, maxTokensFields: [] }],
    cap: 0,
    countPrompt: () => Promise.resolve(0),
    writeBody: () => JSON.stringify(body),
    unserved: () => endpointNotServed(format.path),
    id,
    headers: () => ({}),
    signal,
  };
}
