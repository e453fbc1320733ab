import { nearestText } from "../base/edit_distance.ts";
import { ApiError } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { type ReadForm, readFormBody } from "../base/form_body.ts";
import { chatBodyBytesMax, formBodyBytesMax } from "../base/limits.ts";
import { readIdempotencyKey, readJsonBody } from "../base/request.ts";
import { findAccount } from "../ledger/authorization.ts";
import { countUnpricedHourly } from "../summaries/hourly_counters.ts";
import type { Caller } from "../projects/auth.ts";
import { endUser, type PathUser, userBeforeBody } from "../projects/end_user.ts";
import { modelNotFound, noUpstream } from "../upstreams/errors.ts";
import type { Targets } from "../upstreams/upstreams.ts";
import { type Admission, admitCall } from "./admit.ts";
import { inOrder, prepareTargets, pricedTargets, withUpstream } from "./call_targets.ts";
import { failedEnding, type InferenceCall, type InferenceDeps, withTargetHeaders } from "./call.ts";
import { callBlockedEvent } from "./events.ts";
import type { Format, KeptReference, ModelRequest } from "./format.ts";
import {
  awaitPrevious,
  idempotencyMark,
  type PreviousCall,
  type StoredResponse,
} from "./idempotency.ts";
import { resolveReferences } from "./kept_responses.ts";
import { userLimitsOf } from "../projects/user_limits.ts";
import { allowsModel, requireModel } from "../projects/key_models.ts";
import { withCache } from "./response_cache.ts";
import { withRateHeaders } from "./rate_limiter.ts";
import { reasonOf, refuse, refuseRateError } from "./refuse.ts";
import { streamResponse } from "./stream_response.ts";
import { CallTelemetry } from "./telemetry.ts";
import { completionResponse, wholeResponse } from "./whole_response.ts";
import { measureMedia } from "./measure_media.ts";

/** Times that a project's settings may change during one call. */
const settingsMovesMax = 5;

/**
 * The handler of a format's endpoint: read, admit, forward, meter, settle. A user who must top up
 * gets a normal response that says so; a user who gets a model's response has been charged for it.
 * With `reservedUsers` the path begins with `/v1/{user}/`, where the user is none of these words.
 */
export function createCallHandler(
  services: InferenceDeps,
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

async function handleCall(services: InferenceDeps, started: StartedCall): Promise<Response> {
  const { incoming: { request } } = started;
  const caller = await services.auth.caller(request, "chat");
  const { key, snapshot: { project } } = caller;
  const { about } = started.telemetry;
  about.caller = caller;
  // Such a call is shown at its end, with what it cost.
  if (services.deps.showCall) started.incoming.note({ shown: "call" });
  about.user = userBeforeBody(caller, request, started.pathUser);
  const place = services.places.acquire(project.id, key.id);
  try {
    await requireWithinRates(services, { ...started, caller });
    return await readAndRespond(services, { ...started, place }, caller);
  } finally {
    place.release();
  }
}

/** Throws 429 before the body is read, where the caller is known to be over a rate limit. */
async function requireWithinRates(
  services: InferenceDeps,
  { id, incoming, pathUser, caller }: StartedCall & { caller: Caller },
): Promise<void> {
  const { key, snapshot: { project } } = caller;
  const { key: { requestsPerMinute, tokensPerMinute }, user: ofUser, users, reply } =
    project.limits;
  const isLimited = requestsPerMinute ?? tokensPerMinute ?? ofUser.requestsPerMinute ?? users;
  if (reply !== "error" || isLimited === undefined) return;
  const user = userBeforeBody(caller, incoming.request, pathUser);
  if (user === null) return;
  const { rateLimiter } = services;
  const exceeded = rateLimiter.exceeded(key.id, project.limits.key) ??
    rateLimiter.exceededByRefusals(
      { projectId: project.id, user },
      userLimitsOf(project, user).requestsPerMinute,
    );
  if (exceeded) await refuseRateError(services, { id, user, caller }, exceeded);
}

async function readAndRespond(
  services: InferenceDeps,
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
    const previous = await awaitPrevious(services, read);
    // A stored response counts toward no limit, and needs neither price nor upstream any more.
    if (previous?.stored) return replayResponse(read, previous.stored);
    const completed = await completeCall(services, read, previous);
    const hasCache = caller.snapshot.project.responseCache?.enabled;
    const call = hasCache ? await withCache(services, completed) : completed;
    const admission = await admitCall(services, call);
    if (admission.kind !== "settings_moved") {
      return await respond(services, call, { admission, note: started.incoming.note });
    }
    caller = await services.auth.caller(request, "chat");
  }
  throw new ApiError(503, {
    message: "The project's settings kept changing.",
    code: "contended",
  });
}

async function respond(
  services: InferenceDeps,
  call: InferenceCall,
  { admission, note }: {
    admission: Exclude<Admission, { kind: "settings_moved" }>;
    note: Incoming["note"];
  },
): Promise<Response> {
  switch (admission.kind) {
    case "replayed":
      return replayResponse(call, admission.stored);
    case "refused": {
      const { refusal } = admission;
      const response = await refuse(services, call, refusal);
      const { status } = response;
      note({ refused: reasonOf(refusal) });
      call.telemetry.end({ kind: "paywalled", reason: reasonOf(refusal), status });
      return response;
    }
    case "admitted": {
      const { admitted } = admission;
      const responding = call.input.stream
        ? streamResponse(services, admitted)
        : wholeResponse(services, admitted);
      try {
        return await responding;
      } catch (error) {
        throw withRateHeaders(withTargetHeaders(error, admitted), admitted.rateLimits);
      } finally {
        const { isRouted, target, failed } = admitted;
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

type Continued = "hiddenTokens" | "previousResponse" | "historyItems";

/** A call as far as the request alone decides it. */
type ReadCall = Omit<
  InferenceCall,
  "targets" | "isRouted" | "conversation" | "cache" | "ref" | "previous" | Continued
>;

function readCall(
  { deps }: InferenceDeps,
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
  const input = format.readRequest(body.value, { bytes, fields, file });
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

/**
 * Adds targets with their prices, and the account. Throws 403 for a key that may not call the
 * model, 404 for a model without a price, 400 for what its price does not
 * cover, 502 for no upstream.
 */
async function completeCall(
  services: InferenceDeps,
  read: ReadCall,
  previous: PreviousCall | null,
): Promise<InferenceCall> {
  const { deps, findTargets } = services;
  const { caller, input, user, telemetry } = read;
  const { key, snapshot: { project } } = caller;
  const { model } = input;
  requireModel(key, model);
  const { route, targets: found } = await findTargets(project, model);
  const priced = pricedTargets(services, read, found);
  if (priced.length === 0) await refuseUnpriced(services, read, { route, targets: found });
  const { whole, upstream, hiddenTokens, previousResponse, historyItems } = await withReferences(
    deps,
    read,
  );
  const call: InferenceCall = {
    ...read,
    input: whole,
    targets: [],
    isRouted: route !== null,
    conversation: null,
    cache: null,
    hiddenTokens,
    previousResponse,
    historyItems,
    ref: await findAccount(deps.kv, project, user),
    previous,
  };
  const targets = prepareTargets(services, call, withUpstream(priced, upstream));
  for (const target of targets) {
    const loading = services.reasoningModels.load(target.upstream.url, target.model);
    if (loading) await loading;
  }
  call.targets = targets;
  const measuring = measureMedia(call.format, whole, deps.clock);
  if (measuring) await measuring;
  if (route && targets.length > 1) {
    Object.assign(call, await inOrder(services, call, { route, targets }));
  }
  telemetry.span?.set({ "farebox.project": project.id, "gen_ai.request.model": model });
  return call;
}

/**
 * Throws 404 where no target has a price, or no upstream of the route serves the model, and 502
 * where there is no upstream.
 */
async function refuseUnpriced(
  services: InferenceDeps,
  read: ReadCall,
  { route, targets }: Targets,
): Promise<never> {
  const { deps, prices } = services;
  const { caller: { key, snapshot: { project } }, input: { model }, receivedAt } = read;
  const isPriced = targets.length === 0 && prices.terms(project, model, receivedAt) !== null;
  if (isPriced) throw route ? modelNotFound(model) : noUpstream(deps.config);
  await reportUnpriced(services, read);
  const { models, catalogue } = project.pricing;
  const names = [...Object.keys(models), ...(catalogue ? prices.catalogueModels(project) : [])];
  throw modelNotFound(model, nearestText(model, names.filter((name) => allowsModel(key, name))));
}

function isPreviousResponse({ param }: KeptReference): boolean {
  return param === "previous_response_id";
}

/** Finds what a request refers to by id. Throws 400 for an id that is not its user's. */
async function withReferences(
  deps: InferenceDeps["deps"],
  { format, input, user, caller: { snapshot } }: ReadCall,
): Promise<Pick<InferenceCall, Continued> & { whole: ModelRequest; upstream: string | null }> {
  const references = format.referencesOf?.(input) ?? [];
  const whose = { projectId: snapshot.project.id, user };
  const { hiddenTokens, kept, upstream } = await resolveReferences(deps, whose, references);
  return {
    upstream,
    whole: kept && format.withKept ? format.withKept(input, kept) : input,
    hiddenTokens,
    previousResponse: references.find(isPreviousResponse)?.id ?? null,
    historyItems: kept?.history.length ?? 0,
  };
}

/** A request for a model without a price: its owner may have forgotten one. */
async function reportUnpriced(
  { deps, refusalReports, refusedModels }: InferenceDeps,
  { id, user, caller, input, receivedAt }: ReadCall,
): Promise<void> {
  const { id: projectId } = caller.snapshot.project;
  const reason = "model_without_price";
  deps.metrics.unpricedCalls.add();
  const model = refusedModels.nameOf(projectId, input.model);
  deps.committer.count(countUnpricedHourly(projectId, model, receivedAt));
  await refusalReports.report({
    projectId,
    user,
    reason,
    events: (count) => [callBlockedEvent({ id, user, ref: null, input }, { reason, count })],
  });
}
