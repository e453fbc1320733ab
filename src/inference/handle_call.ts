import { ApiError } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { chatBodyBytesMax } from "../base/limits.ts";
import { readIdempotencyKey, readJsonBody } from "../base/request.ts";
import type { Caller } from "../projects/auth.ts";
import { findAccount } from "../ledger/authorization.ts";
import { endUser } from "../projects/end_user.ts";
import { type Admission, admitCall, modelNotFound } from "./admit.ts";
import { failedEnding, type InferenceCall, type InferenceDeps } from "./call.ts";
import { PreparedBody } from "./prepared_body.ts";
import { withRateHeaders } from "./rate_limiter.ts";
import { modelTerms } from "../pricing/price.ts";
import {
  awaitPrevious,
  idempotencyMark,
  type PreviousCall,
  type StoredResponse,
} from "./idempotency.ts";
import { paywallReply } from "../formats/chat/paywall_reply.ts";
import { readChatRequest } from "../formats/chat/request.ts";
import { CallTelemetry } from "./telemetry.ts";
import { streamResponse } from "./stream_response.ts";
import { noUpstream } from "../upstreams/errors.ts";
import { completionResponse, wholeResponse } from "./whole_response.ts";

/** Settings that change this often under one request are a fault of their own. */
const settingsMovesMax = 5;

/**
 * `POST /v1/chat/completions`: read, admit, forward, meter, settle. A user who must top up gets a
 * normal completion that says so; whoever gets an answer has paid for it.
 */
export function createChatHandler(services: InferenceDeps): Handler {
  return async (incoming) => {
    const id = services.deps.id("req");
    const steps = new CallTelemetry(services.deps, { id, startedAt: incoming.startedAt });
    try {
      return await answerChat(services, { incoming, id, telemetry: steps });
    } catch (error) {
      // Where it had been admitted, its end has been told before.
      steps.end({ ...failedEnding(error), kind: "refused" });
      throw error;
    }
  };
}

/** A request at its beginning. */
type Begun = Pick<InferenceCall, "id" | "telemetry"> & { incoming: Incoming };

async function answerChat(services: InferenceDeps, begun: Begun): Promise<Response> {
  const { incoming: { request, inTime, bodies } } = begun;
  let caller = await services.auth.caller(request, "chat");
  const body = await inTime(readJsonBody(request, chatBodyBytesMax, bodies));
  for (let moves = 0; moves < settingsMovesMax; moves++) {
    const asked = readAsked(services, { ...begun, caller, body });
    const earlier = await awaitPrevious(services, asked);
    // What was answered before is new to no limit, and needs neither price nor upstream any more.
    if (earlier?.stored) return answeredBefore(asked, earlier.stored);
    const ask = await readAsk(services, asked, earlier);
    const admission = await admitCall(services, ask);
    if (admission.kind !== "settings_moved") return await respond(services, ask, admission);
    caller = await services.auth.caller(request, "chat");
  }
  throw new ApiError(503, {
    message: "The project's settings kept changing.",
    code: "contended",
  });
}

async function respond(
  services: InferenceDeps,
  ask: InferenceCall,
  admission: Exclude<Admission, { kind: "settings_moved" }>,
): Promise<Response> {
  const { id, telemetry, chat, requestId, receivedAt } = ask;
  switch (admission.kind) {
    case "replayed":
      return answeredBefore(ask, admission.stored);
    case "paywalled": {
      telemetry.end({ kind: "paywalled" });
      const completionId = id.replace("req_", "chatcmpl-");
      const { paywall, rates } = admission;
      return paywallReply(paywall, { chat, requestId, completionId, now: receivedAt, rates });
    }
    case "admitted": {
      const { answer } = admission;
      const answered = chat.stream
        ? streamResponse(services, answer)
        : wholeResponse(services, answer);
      return await answered.catch((error) => {
        throw withRateHeaders(error, answer.rateLimits);
      });
    }
  }
}

function answeredBefore({ telemetry, requestId }: Asked, stored: StoredResponse): Response {
  telemetry.end({ kind: "replayed" });
  const headers = { ...stored.headers, "idempotent-replayed": "true" };
  return completionResponse(stored.body, requestId, headers);
}

interface Received extends Begun {
  caller: Caller;
  body: Awaited<ReturnType<typeof readJsonBody>>;
}

/** What a request says by itself. */
type Asked = Omit<InferenceCall, "terms" | "upstream" | "preparedBody" | "ref" | "previous">;

function readAsked({ deps }: InferenceDeps, received: Received): Asked {
  const { id, telemetry, incoming, caller, body } = received;
  const { request, requestId, path, bodies } = incoming;
  const { project } = caller.snapshot;
  const chat = readChatRequest(body.value, {
    bytes: body.bytes,
    allowedFields: project.allowedFields,
  });
  const user = endUser(caller, request, { body: chat.body.user, path: pathUser(path) });
  const key = readIdempotencyKey(request);
  const askedAt = deps.clock.now();
  const replay = key !== null && !chat.stream
    ? idempotencyMark({ projectId: project.id, user }, key, { chat, now: askedAt })
    : null;
  return {
    id,
    telemetry,
    requestId,
    request,
    bodies,
    receivedAt: askedAt,
    caller,
    user,
    chat,
    idempotency: replay,
  };
}

/** Everything else about a request that can be at fault, before money is held for it. */
async function readAsk(
  services: InferenceDeps,
  asked: Asked,
  earlier: PreviousCall | null,
): Promise<InferenceCall> {
  const { caller: { snapshot: { project } }, chat: { model }, user, telemetry } = asked;
  const terms = modelTerms(project, model);
  if (!terms) throw modelNotFound(model);
  telemetry.span?.set({ "farebox.project": project.id, "gen_ai.request.model": model });
  const upstream = await services.findUpstream(project, model);
  if (!upstream) throw noUpstream(services.deps.config);
  const ref = await findAccount(services.deps.kv, project, user);
  const firstRequest = new PreparedBody({ upstream, chat: asked.chat });
  return { ...asked, terms, upstream, preparedBody: firstRequest, ref, previous: earlier };
}

/** The user of `/v1/{user}/chat/completions`, as it stood in the path. */
function pathUser(path: string): string | undefined {
  // Nearly all of them are this one.
  if (path === "/v1/chat/completions") return undefined;
  const [, , user, next] = path.split("/");
  return next === "chat" ? user : undefined;
}
