import type { ModelEndpoint } from "../base/endpoints.ts";
import { ApiError } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { isObject, type JsonObject, parseJson } from "../base/json.ts";
import { chatBodyBytesMax, upstreamErrorBytesMax } from "../base/limits.ts";
import { readJsonBody } from "../base/request.ts";
import { corsHeaders, jsonResponse } from "../base/response.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { ModelTerms } from "../pricing/terms.ts";
import { requireActive } from "../projects/active.ts";
import type { Caller } from "../projects/auth.ts";
import { endUserIfAny } from "../projects/end_user.ts";
import { requireModel } from "../projects/key_models.ts";
import { callUpstream, readUpstreamBody } from "../upstreams/client.ts";
import { modelNotFound, noUpstream, upstreamTimeout } from "../upstreams/errors.ts";
import { LearnedFacts } from "../upstreams/learned.ts";
import type { Upstream } from "../upstreams/upstream.ts";
import { withModel } from "./admit/call_targets.ts";
import type { TextFormat } from "./format.ts";
import { withoutEmptyUsers } from "./without_empty_users.ts";
import type { ModelRequest } from "./model_request.ts";
import { passedHeaders } from "./ask/forward.ts";
import { coverageOf, toolCallsHeld } from "./admit/priced_call.ts";
import { countForHold, type CountingServices, mediaWork } from "./admit/prompt_counting.ts";
import { boundMedia } from "./admit/prompt_size.ts";
import { rateHeaders, rateLimitedError } from "./admit/rate_limiter.ts";
import { resolveReferences } from "./kept/kept_responses.ts";
import { loadTurns } from "./kept/kept_turns.ts";
import { measureMedia } from "./admit/measure_media.ts";
import type { InferenceServices } from "./services.ts";
import { callerDisconnectedEarly } from "./caller_left.ts";

/** The services that counting tokens for a caller needs. */
type CountTokensServices =
  & CountingServices
  & Pick<
    InferenceServices,
    "deps" | "auth" | "places" | "rateLimiter" | "prices" | "findTargets" | "texts"
  >;

/** An endpoint of a format that counts the tokens of a request. It calls no model, and is free. */
export interface CountEndpoint extends ModelEndpoint {
  readonly kind: "count";
  format: TextFormat;
  readRequest: TextFormat["readRequest"];
  writeBody(request: ModelRequest): string;
  /** The count in an upstream's response; null where there is none. */
  readCount(body: JsonObject): number | null;
  /** The body of our response. */
  writeCount(tokens: number): JsonObject;
}

/** How long an upstream may take to count, in milliseconds. */
const countingTimeoutMs = 30_000;

/**
 * The handler of an endpoint that counts tokens: by the upstream, else by our own tokenizer where
 * the upstream has no such endpoint. With `reservedUsers` the path begins with `/v1/{user}/`.
 */
export function createCountHandler(
  services: CountTokensServices,
  endpoint: CountEndpoint,
  { reservedUsers }: { reservedUsers?: ReadonlySet<string> } = {},
): Handler {
  const countBy = createUpstreamCounter(services, endpoint);
  return async (incoming) => {
    const { request, requestId, path } = incoming;
    const caller = await services.auth.caller(request, "chat");
    const { key, snapshot: { project } } = caller;
    const place = services.places.acquire(project.id, key.id);
    try {
      const permit = services.rateLimiter.acquire(key.id, project.limits.key);
      if ("limited" in permit) throw rateLimitedError(permit.limited);
      try {
        const segment = reservedUsers && path.split("/")[2];
        const pathUser = segment && reservedUsers
          ? { segment, reserved: reservedUsers }
          : undefined;
        const read = await readAsked(services, endpoint, { incoming, caller });
        const named = { body: read.input.user, path: pathUser };
        const user = endUserIfAny(caller, request, named) ?? key.id;
        const asked = await withReferences(services, endpoint, { ...read, user, incoming });
        const tokens = await countBy(asked) ?? await countOurselves(services, endpoint, asked);
        const headers = { ...corsHeaders, ...rateHeaders([permit.rateLimits]) };
        return jsonResponse(200, endpoint.writeCount(tokens), requestId, headers);
      } finally {
        permit.release();
      }
    } finally {
      place.release();
    }
  };
}

/** A request to count tokens, validated as a call with this body would be. */
interface AskedCount {
  input: ModelRequest;
  terms: ModelTerms;
  caller: Caller;
  request: Request;
}

/** Such a request with what it refers to. */
interface CompleteCount extends AskedCount {
  user: string;
  /** The most tokens that references add to the prompt at the upstream. */
  hiddenTokens: number;
  /** The name of the upstream that keeps what it refers to; null for any. */
  keptBy: string | null;
}

/** Throws 400, 403 and 404 as a call with this body would. */
async function readAsked(
  { prices, findTargets, deps: { clock } }: CountTokensServices,
  { format, readRequest }: CountEndpoint,
  { incoming: { request, inTime, bodies }, caller }: { incoming: Incoming; caller: Caller },
): Promise<AskedCount> {
  const { key, snapshot: { project } } = caller;
  const share = bodies.shareOf(key.id);
  const { value, bytes } = await inTime(readJsonBody(request, chatBodyBytesMax, share));
  const { unknownFields: unknown, allowedFields: allowed } = project;
  const input = readRequest(withoutEmptyUsers(value), { bytes, fields: { unknown, allowed } });
  requireActive(project);
  requireModel(key, input.model);
  const { targets: [target] } = await findTargets(project, input.model);
  const { place = null, model = input.model } = target ?? {};
  const asked = input.model;
  const terms = prices.targetTerms(project, { asked, model, place, at: clock.now() });
  if (!terms) throw modelNotFound(input.model);
  const covers = coverageOf(terms);
  const toolCallsMax = terms.maxToolCalls ?? toolCallsHeld;
  const fitted = format.tools?.fitToPrice(input, { covers, allowed, toolCallsMax }).request ??
    input;
  format.requirePriced(fitted, covers, allowed);
  return { input: fitted, terms, caller, request };
}

/** Adds what the request refers to. Throws 400 for what is not its user's own. */
async function withReferences(
  { deps, texts }: CountTokensServices,
  { format: { kept } }: CountEndpoint,
  { incoming: { request, bodies }, ...asked }: AskedCount & { user: string; incoming: Incoming },
): Promise<CompleteCount> {
  const { caller: { key, snapshot: { project } }, input, user } = asked;
  const references = kept?.references(input) ?? [];
  const { hiddenTokens, turns, upstream: keptBy } = await resolveReferences(
    deps,
    { project, user },
    references,
  );
  if (!kept || !turns) return { ...asked, hiddenTokens, keptBy };
  const reserve = (bytes: number) => bodies.add(request, key.id, bytes);
  const loading = { kv: deps.kv, texts, projectId: project.id, reserve };
  const whole = kept.withKept(input, await loadTurns(loading, turns));
  return { ...asked, input: whole, hiddenTokens, keptBy };
}

/** Thrown where an upstream has no such endpoint. */
const notServed = new Error("the upstream does not count tokens");

/** Creates a function that counts by asking upstreams; null where one is known not to count. */
function createUpstreamCounter(
  { deps, findTargets }: CountTokensServices,
  endpoint: CountEndpoint,
) {
  const { format, writeBody, readCount } = endpoint;
  /** The name of the fact that an upstream does not count. */
  const withoutCounting = `counts no tokens of ${format.name}`;
  const targets = [{ format: format.name, maxTokensFields: [] }];

  async function ask(upstream: Upstream, { input, request }: AskedCount, signal: AbortSignal) {
    const { response } = await callUpstream({
      // What is learned about calls says nothing about this endpoint.
      upstream: { ...upstream, learned: new LearnedFacts(deps.clock) },
      endpoint: () => endpoint,
      input,
      targets,
      cap: 0,
      countPrompt: () => Promise.resolve(0),
      writeBody: () => writeBody(input),
      unserved: () => notServed,
      id: deps.id("req"),
      headers: () => ({
        ...format.upstreamHeaders?.(upstream.apiKey),
        ...passedHeaders(format, request),
      }),
      signal,
    }, null);
    const bytes = await readUpstreamBody(response.body, upstreamErrorBytesMax, signal);
    return readCount(objectIn(bytes));
  }

  return async (asked: CompleteCount): Promise<number | null> => {
    const { caller: { snapshot: { project } }, input, request, keptBy } = asked;
    const { targets } = await findTargets(project, input.model);
    const target = targets.find(({ upstream }) => upstream.name === keptBy) ?? targets[0];
    if (!target) throw noUpstream(deps.config);
    const { upstream, model } = target;
    const speaks = upstream.formats?.includes(format.name) ?? true;
    const { learned } = upstream;
    if (!speaks || learned.find(withoutCounting)) return null;
    const controller = new AbortController();
    const late = `no count within ${countingTimeoutMs} ms`;
    const stop = deps.clock.after(
      countingTimeoutMs,
      () => controller.abort(upstreamTimeout(late)),
    );
    const onDisconnect = () => controller.abort(callerDisconnectedEarly);
    request.signal.addEventListener("abort", onDisconnect);
    try {
      const there = { ...asked, input: withModel(input, model) };
      const count = await ask(upstream, there, controller.signal);
      learned.forget(withoutCounting);
      return count;
    } catch (error) {
      if (error !== notServed) throw error;
      learned.addSign(withoutCounting, true);
      return null;
    } finally {
      stop();
      request.signal.removeEventListener("abort", onDisconnect);
    }
  };
}

/** The object that a body is; an empty one where it is something else. */
function objectIn(bytes: Uint8Array): JsonObject {
  try {
    const value = parseJson(decodeUtf8(bytes) ?? "");
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/**
 * Counts with our own tokenizer. Throws 429 where the budget of the user, the key or the project is
 * used up.
 */
async function countOurselves(
  services: CountTokensServices,
  { format }: CountEndpoint,
  { input, terms, caller, request, user, hiddenTokens }: CompleteCount,
): Promise<number> {
  const call = { format, input, caller, request, user };
  const { unpaidCounting } = services;
  if (unpaidCounting.isUsedUp(caller)) throw tooMuchCounted();
  const measuring = measureMedia(format, input, services.deps.clock);
  if (measuring) await measuring;
  const media = { ...boundMedia(format, input, terms), added: 0 };
  unpaidCounting.take(caller, mediaWork(media));
  const { tokens } = await countForHold(services, call, { media, most: Infinity });
  if (tokens === null) throw tooMuchCounted();
  return tokens + hiddenTokens;
}

function tooMuchCounted(): ApiError {
  return new ApiError(429, {
    message: "Too many tokens were counted for this user, API key or project. Try again shortly.",
    type: "rate_limit_error",
    code: "rate_limit_exceeded",
    headers: { "retry-after": "5" },
  });
}
