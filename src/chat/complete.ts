import { ApiError } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { chatBodyBytesMax } from "../base/limits.ts";
import { readIdempotencyKey, readJsonBody } from "../base/request.ts";
import type { Caller } from "../projects/auth.ts";
import { findAccount } from "../ledger/authorization.ts";
import { endUser } from "../projects/end_user.ts";
import { type Admission, admit, modelNotFound } from "./admit.ts";
import { type Ask, type ChatRooms, failure } from "./answer.ts";
import { FirstRequest } from "./first_request.ts";
import { withRates } from "./limits.ts";
import { termsOf } from "./pricing.ts";
import { findEarlier } from "./earlier.ts";
import { type Replay, replayMark, type StoredAnswer } from "./replay.ts";
import { paywallReply } from "./reply.ts";
import { readChat } from "./schema.ts";
import { Steps } from "./steps.ts";
import { streamedAnswer } from "./streamed_answer.ts";
import { noUpstream } from "./upstream_error.ts";
import { completionResponse, wholeAnswer } from "./whole_answer.ts";

/** Settings that change this often under one request are a fault of their own. */
const settingsMovesMax = 5;

/**
 * `POST /v1/chat/completions`: read, admit, forward, meter, settle. A user who must top up gets a
 * normal completion that says so; whoever gets an answer has paid for it.
 */
export function completeChat(rooms: ChatRooms): Handler {
  return async (incoming) => {
    const id = rooms.deps.id("req");
    const steps = new Steps(rooms.deps, { id, startedAt: incoming.startedAt });
    try {
      return await answerChat(rooms, { incoming, id, steps });
    } catch (error) {
      // Where it had been admitted, its end has been told before.
      steps.end({ ...failure(error), kind: "refused" });
      throw error;
    }
  };
}

/** A request at its beginning. */
type Begun = Pick<Ask, "id" | "steps"> & { incoming: Incoming };

async function answerChat(rooms: ChatRooms, begun: Begun): Promise<Response> {
  const { incoming: { request, inTime, bodies } } = begun;
  let caller = await rooms.auth.caller(request, "chat");
  const body = await inTime(readJsonBody(request, chatBodyBytesMax, bodies));
  for (let moves = 0; moves < settingsMovesMax; moves++) {
    const asked = readAsked(rooms, { ...begun, caller, body });
    const earlier = await findEarlier(rooms, asked);
    // What was answered before is new to no limit, and needs neither price nor upstream any more.
    if (earlier?.stored) return answeredBefore(asked, earlier.stored);
    const ask = await readAsk(rooms, asked, earlier);
    const admission = await admit(rooms, ask);
    if (admission.kind !== "settings_moved") return await respond(rooms, ask, admission);
    caller = await rooms.auth.caller(request, "chat");
  }
  throw new ApiError(503, {
    message: "The project's settings kept changing.",
    code: "contended",
  });
}

async function respond(
  rooms: ChatRooms,
  ask: Ask,
  admission: Exclude<Admission, { kind: "settings_moved" }>,
): Promise<Response> {
  const { id, steps, chat, requestId, askedAt } = ask;
  switch (admission.kind) {
    case "replayed":
      return answeredBefore(ask, admission.stored);
    case "paywalled": {
      steps.end({ kind: "paywalled" });
      const completionId = id.replace("req_", "chatcmpl-");
      const { paywall, rates } = admission;
      return paywallReply(paywall, { chat, requestId, completionId, now: askedAt, rates });
    }
    case "admitted": {
      const { answer } = admission;
      const answered = chat.stream ? streamedAnswer(rooms, answer) : wholeAnswer(rooms, answer);
      return await answered.catch((error) => {
        throw withRates(error, answer.rates);
      });
    }
  }
}

function answeredBefore({ steps, requestId }: Asked, stored: StoredAnswer): Response {
  steps.end({ kind: "replayed" });
  const headers = { ...stored.headers, "idempotent-replayed": "true" };
  return completionResponse(stored.body, requestId, headers);
}

interface Received extends Begun {
  caller: Caller;
  body: Awaited<ReturnType<typeof readJsonBody>>;
}

/** What a request says by itself. */
type Asked = Omit<Ask, "terms" | "upstream" | "firstRequest" | "ref" | "earlier">;

function readAsked({ deps }: ChatRooms, received: Received): Asked {
  const { id, steps, incoming, caller, body } = received;
  const { request, requestId, path, bodies } = incoming;
  const { project } = caller.snapshot;
  const chat = readChat(body.value, { bytes: body.bytes, allowedFields: project.allowedFields });
  const user = endUser(caller, request, { body: chat.body.user, path: pathUser(path) });
  const key = readIdempotencyKey(request);
  const askedAt = deps.clock.now();
  const replay = key !== null && !chat.stream
    ? replayMark({ projectId: project.id, user }, key, { chat, now: askedAt })
    : null;
  return { id, steps, requestId, request, bodies, askedAt, caller, user, chat, replay };
}

/** Everything else about a request that can be at fault, before money is held for it. */
async function readAsk(rooms: ChatRooms, asked: Asked, earlier: Replay | null): Promise<Ask> {
  const { caller: { snapshot: { project } }, chat: { model }, user, steps } = asked;
  const terms = termsOf(project, model);
  if (!terms) throw modelNotFound(model);
  steps.span?.set({ "farebox.project": project.id, "gen_ai.request.model": model });
  const upstream = await rooms.findUpstream(project, model);
  if (!upstream) throw noUpstream(rooms.deps.config);
  const ref = await findAccount(rooms.deps.kv, project, user);
  const firstRequest = new FirstRequest({ upstream, chat: asked.chat });
  return { ...asked, terms, upstream, firstRequest, ref, earlier };
}

/** The user of `/v1/{user}/chat/completions`, as it stood in the path. */
function pathUser(path: string): string | undefined {
  // Nearly all of them are this one.
  if (path === "/v1/chat/completions") return undefined;
  const [, , user, next] = path.split("/");
  return next === "chat" ? user : undefined;
}
