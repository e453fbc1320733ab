import { ApiError } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { type ReadForm, readFormBody } from "../base/form_body.ts";
import { chatBodyBytesMax, formBodyBytesMax } from "../base/limits.ts";
import { readIdempotencyKey, readJsonBody } from "../base/request.ts";
import type { Caller } from "../projects/auth.ts";
import { endUser, type PathUser, userBeforeBody } from "../projects/end_user.ts";
import { userLimitsOf } from "../projects/user_limits.ts";
import { type Admission, admitCall } from "./admit/admit.ts";
import { type InferenceCall, isTextCall, type ReadCall } from "./call.ts";
import type { Format } from "./format.ts";
import { withoutEmptyUsers } from "./without_empty_users.ts";
import { awaitPrevious, idempotencyMark, type StoredResponse } from "./receive/idempotency.ts";
import { withRateHeaders } from "./admit/rate_limiter.ts";
import {
  isToldByError,
  reasonOf,
  refuse,
  refuseRateError,
  type RefuseServices,
  type ReportServices,
} from "./admit/refuse.ts";
import type { RespondServices } from "./respond/respond_services.ts";
import { streamResponse } from "./respond/stream_response.ts";
import { CallTelemetry } from "./telemetry.ts";
import { wholeResponse } from "./respond/whole_response.ts";
import { failedEnding } from "./finish/ending.ts";
import type { InferenceServices } from "./services.ts";
import { completionResponse, withTargetHeaders } from "./respond/written_response.ts";

/** Times that a project's settings may change during one call. */
const settingsMovesMax = 5;

/**
 * The handler of a format's endpoint: read, admit, forward, meter, settle. A user who must top up
 * gets a normal response that says so; a user who gets a model's response has been charged for it.
 * With `reservedUsers` the path begins with `/v1/{user}/`, where the user is none of these words.
 */
export function createCallHandler(
  services: InferenceServices,
  format: Format,
  { reservedUsers }: { reservedUsers?: ReadonlySet<string> } = {},
): Handler {
  return async (incoming) => {
    const id = services.deps.id("req");
    const { startedAt, requestId } = incoming;
    const { deps, requestLog, refusedModels } = services;
    const arrived = { id, endpoint: format.name, startedAt, requestId, requestLog, refusedModels };
    const telemetry = new CallTelemetry(deps, arrived);
    const segment = reservedUsers && incoming.path.split("/")[2];
    const pathUser = segment && reservedUsers ? { segment, reserved: reservedUsers } : undefined;
    try {
      return await handleCall(services, { incoming, id, telemetry, format, pathUser });
    } catch (error) {
      // The ending of an admitted call has been recorded before, and stays.
      telemetry.end({ ...failedEnding(error), kind: "refused" });
      throw error;
    }
  };
}

type StartedCall = Pick<InferenceCall, "id" | "telemetry" | "format"> & {
  incoming: Incoming;
  pathUser: PathUser | undefined;
};

async function handleCall(services: InferenceServices, started: StartedCall): Promise<Response> {
  const { incoming: { request } } = started;
  const knowing = services.auth.caller(request, "chat");
  const caller = knowing instanceof Promise ? await knowing : knowing;
  const { key, snapshot: { project } } = caller;
  const { about } = started.telemetry;
  about.caller = caller;
  // Such a call is shown at its end, with what it cost.
  if (services.deps.showCall) started.incoming.note({ shown: "call" });
  about.user = userBeforeBody(caller, request, started.pathUser);
  const place = services.places.acquire(project.id, key.id);
  try {
    const refusing = refusalByRates(services, { ...started, caller });
    if (refusing) await refusing;
    return await readAndRespond(services, { ...started, place }, caller);
  } finally {
    place.release();
  }
}

/**
 * Rejects with 429 before the body is read, where the caller is known to be over a rate limit; null
 * where not.
 */
function refusalByRates(
  services: ReportServices & Pick<InferenceServices, "rateLimiter">,
  { id, incoming, pathUser, caller, format }: StartedCall & { caller: Caller },
): Promise<never> | null {
  const { key, snapshot: { project } } = caller;
  const { key: { requestsPerMinute, tokensPerMinute }, user: ofUser, users } = project.limits;
  const isLimited = requestsPerMinute ?? tokensPerMinute ?? ofUser.requestsPerMinute ?? users;
  if (isLimited === undefined || !isToldByError(project, format)) return null;
  const user = userBeforeBody(caller, incoming.request, pathUser);
  if (user === null) return null;
  const { rateLimiter } = services;
  const exceeded = rateLimiter.exceeded(key.id, project.limits.key) ??
    rateLimiter.exceededByRefusals(
      { projectId: project.id, user },
      userLimitsOf(project, user).requestsPerMinute,
    );
  return exceeded ? refuseRateError(services, { id, user, caller }, exceeded) : null;
}

async function readAndRespond(
  services: InferenceServices,
  started: StartedCall & Pick<InferenceCall, "place">,
  authenticated: Caller,
): Promise<Response> {
  const { incoming: { request, inTime, bodies } } = started;
  let caller = authenticated;
  const share = bodies.shareOf(caller.key.id);
  const body = await inTime(
    started.format.readsForms
      ? readFormBody(request, formBodyBytesMax, share)
      : readJsonBody(request, chatBodyBytesMax, share),
  );
  for (let moves = 0; moves < settingsMovesMax; moves++) {
    const read = readCall(services, { ...started, caller, body });
    const waiting = awaitPrevious(services, read);
    const previous = waiting && await waiting;
    // A stored response counts toward no limit, and needs neither price nor upstream any more.
    if (previous?.stored) return replayResponse(read, previous.stored);
    const admission = await admitCall(services, read, previous);
    if (admission.kind !== "settings_moved") {
      return await respond(services, read, { admission, note: started.incoming.note });
    }
    caller = await services.auth.caller(request, "chat");
  }
  throw new ApiError(503, {
    message: "The project's settings kept changing.",
    code: "contended",
  });
}

async function respond(
  services: RefuseServices & RespondServices,
  read: ReadCall,
  { admission, note }: {
    admission: Exclude<Admission, { kind: "settings_moved" }>;
    note: Incoming["note"];
  },
): Promise<Response> {
  switch (admission.kind) {
    case "replayed":
      return replayResponse(read, admission.stored);
    case "refused": {
      const { call, refusal } = admission;
      const response = await refuse(services, call, refusal);
      const { status } = response;
      note({ refused: reasonOf(refusal) });
      call.telemetry.end({ kind: "paywalled", reason: reasonOf(refusal), status });
      return response;
    }
    case "admitted": {
      const { admitted } = admission;
      const responding = isTextCall(admitted) && read.input.stream
        ? streamResponse(services, admitted)
        : wholeResponse(services, admitted);
      try {
        return await responding;
      } catch (error) {
        throw withRateHeaders(withTargetHeaders(error, admitted), admitted.rateLimits);
      } finally {
        const { isRouted, attempt: { target }, failed } = admitted;
        if (isRouted) note({ upstream: target.upstream.name, attempts: failed.length + 1 });
      }
    }
  }
}

function replayResponse({ telemetry, requestId }: ReadCall, stored: StoredResponse): Response {
  telemetry.end({ kind: "replayed" });
  const headers = { ...stored.headers, "idempotent-replayed": "true" };
  return completionResponse(stored.body, requestId, headers, stored.status);
}

function readCall(
  { deps }: Pick<InferenceServices, "deps">,
  { id, telemetry, format, place, incoming, pathUser, caller, body }: StartedCall & {
    place: InferenceCall["place"];
    caller: Caller;
    body: Awaited<ReturnType<typeof readJsonBody>> & Partial<Pick<ReadForm, "file">>;
  },
): ReadCall {
  const { request, requestId, bodies } = incoming;
  const { project } = caller.snapshot;
  const { bytes, file = null } = body;
  const fields = { unknown: project.unknownFields, allowed: project.allowedFields };
  const input = format.readRequest(withoutEmptyUsers(body.value), { bytes, fields, file });
  const named = format.hasNoUserField ? {} : { body: input.user };
  const { about } = telemetry;
  about.model = input.model;
  about.stream = input.stream;
  const user = endUser(caller, request, { ...named, path: pathUser });
  about.user = user;
  const key = readIdempotencyKey(request);
  const receivedAt = deps.clock.now();
  const idempotency = key !== null && !input.stream
    ? idempotencyMark({ projectId: project.id, user }, key, { input, now: receivedAt })
    : null;
  return {
    id,
    telemetry,
    requestId,
    request,
    bodies,
    place,
    receivedAt,
    caller,
    user,
    format,
    input,
    idempotency,
  };
}
