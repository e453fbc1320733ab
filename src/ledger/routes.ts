import type { Handler } from "../base/handler.ts";
import { notFound } from "../base/errors.ts";
import { bodyBytesMax } from "../base/limits.ts";
import { formatAmount } from "../base/money.ts";
import { parseWith, readIdempotencyKey, readJsonBody, readLimit } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import { type Auth, byKey, type Caller } from "../projects/auth.ts";
import { endUser } from "../projects/end_user.ts";
import type { Project } from "../projects/schema.ts";
import { listActivities, toCsv } from "./activities.ts";
import { readBalance } from "./balance.ts";
import { amountOf, type Entry, toActivity } from "./entry.ts";
import type { Post, Posted } from "./post.ts";
import { moneyBodySchema, refundBodySchema } from "./schema.ts";
import { readEntry } from "./store.ts";
import { viewAfter, viewBalance } from "./view.ts";

/** Where a user who lacks money is sent, and the sentence that says so. */
export type TopUpOffer = (
  project: Project,
  user: string,
  asked: { amount?: string; balance: string; languages: string | null },
) => Promise<{ url: string; message: string }>;

interface LedgerRooms {
  deps: Deps;
  auth: Auth;
  post: Post;
  offerTopUp: TopUpOffer;
}

/** The endpoints about a user's money. All need the scope `money`. */
export function ledgerRoutes(rooms: LedgerRooms) {
  return {
    deposit: depositOrCharge(rooms, "deposit"),
    charge: depositOrCharge(rooms, "charge"),
    refund: refund(rooms),
    balance: balance(rooms),
    topUp: topUp(rooms),
    activities: activities(rooms),
  };
}

function depositOrCharge(
  { auth, post, offerTopUp }: LedgerRooms,
  verb: "deposit" | "charge",
): Handler {
  return async ({ request, requestId }) => {
    const caller = await auth.caller(request, "money");
    const body = parseWith(moneyBodySchema, (await readJsonBody(request, bodyBytesMax)).value);
    const user = endUser(caller, request, { body: body.user });
    const { project } = caller.snapshot;
    const posted = await post[verb]({
      ref: { projectId: project.id, user },
      amount: body.amount,
      metadata: body.metadata ?? null,
      key: readIdempotencyKey(request),
      origin: { trigger: byKey(caller) },
    });
    const message = verb === "charge" ? { message: "The charge was taken." } : {};
    if (posted.kind !== "insufficient_funds") {
      return bookedResponse(caller, posted, requestId, message);
    }
    const offer = await offerTopUp(project, user, {
      amount: formatAmount(body.amount),
      balance: posted.balance.balance,
      languages: request.headers.get("accept-language"),
    });
    const refusal = { success: false, reason: posted.kind, ...offer };
    return jsonResponse(200, { ...refusal, ...posted.balance }, requestId);
  };
}

function refund({ deps, auth, post }: LedgerRooms): Handler {
  return async ({ request, requestId }) => {
    const caller = await auth.caller(request, "money");
    const body = parseWith(refundBodySchema, (await readJsonBody(request, bodyBytesMax)).value);
    const projectId = caller.snapshot.project.id;
    const original = await readEntry(deps.kv, projectId, body.activityId);
    if (!original) throw notFound("activity");
    const named = body.user !== undefined || request.headers.has("x-service-user");
    const user = named ? endUser(caller, request, { body: body.user }) : original.user;
    const posted = await post.refund({
      ref: { projectId, user },
      original,
      amount: body.amount ?? null,
      metadata: body.metadata ?? null,
      key: readIdempotencyKey(request),
      origin: { trigger: byKey(caller) },
    });
    if (posted.kind === "insufficient_funds") throw new Error("a refund takes what there is");
    const { refundedActivityId, shortfall } = posted.entry;
    return bookedResponse(caller, posted, requestId, { refundedActivityId, shortfall });
  };
}

function bookedResponse(
  { snapshot: { project } }: Caller,
  { kind, entry }: Extract<Posted, { entry: Entry }>,
  requestId: string,
  more: Record<string, unknown>,
): Response {
  const body = {
    success: true,
    activityId: entry.id,
    user: entry.user,
    amount: amountOf(entry),
    currency: project.currency,
    ...viewAfter(entry, project.currency),
    ...more,
  };
  const replayed = kind === "replayed" ? { "idempotent-replayed": "true" } : undefined;
  return jsonResponse(200, body, requestId, replayed);
}

function balance({ deps, auth }: LedgerRooms): Handler {
  return async ({ request, requestId, query }) => {
    const caller = await auth.caller(request, "money");
    const user = endUser(caller, request, { query: query("user") });
    const { id: projectId, currency } = caller.snapshot.project;
    const { balance, held } = await readBalance(deps.kv, { projectId, user }, deps.clock.now());
    const body = { user, currency, ...viewBalance(balance, held, currency) };
    return jsonResponse(200, body, requestId);
  };
}

function topUp({ auth, offerTopUp }: LedgerRooms): Handler {
  return async ({ request, requestId, query }) => {
    const caller = await auth.caller(request, "money");
    const user = endUser(caller, request, { query: query("user") });
    const asked = { balance: "0", languages: null };
    const { url } = await offerTopUp(caller.snapshot.project, user, asked);
    return jsonResponse(200, { url }, requestId);
  };
}

function activities({ deps, auth }: LedgerRooms): Handler {
  return async ({ request, requestId, query }) => {
    const caller = await auth.caller(request, "money");
    const user = endUser(caller, request, { query: query("user") });
    const { id: projectId, currency } = caller.snapshot.project;
    const page = { limit: readLimit(query("limit")), cursor: query("cursor") };
    const { entries, nextCursor } = await listActivities(deps.kv, { projectId, user }, page);
    if (!/\btext\/csv\b/.test(request.headers.get("accept") ?? "")) {
      const list = entries.map((entry) => toActivity(entry, currency));
      return jsonResponse(200, { activities: list, nextCursor }, requestId);
    }
    return new Response(toCsv(entries, currency), {
      headers: {
        "content-type": "text/csv; charset=utf-8",
        "x-request-id": requestId,
        ...(nextCursor ? { "x-next-cursor": nextCursor } : {}),
      },
    });
  };
}
