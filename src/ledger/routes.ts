import type { Handler } from "../base/handler.ts";
import { badRequest, notFound } from "../base/errors.ts";
import { bodyBytesMax } from "../base/limits.ts";
import { type Amount, formatAmount, zero } from "../base/money.ts";
import { parseWith, readIdempotencyKey, readJsonBody, readLimit } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import { type Auth, byKey, type Caller } from "../projects/auth.ts";
import { endUser } from "../projects/end_user.ts";
import type { Project } from "../projects/schema.ts";
import { tallyRefusal } from "../summaries/tally.ts";
import { listActivities, toCsv } from "./activities.ts";
import { readBalance } from "./balance.ts";
import { amountOf, type Entry, toActivity } from "./entry.ts";
import { findAccount } from "./authorization.ts";
import type { Post, Posted, Refusal } from "./post.ts";
import { moneyBodySchema, refundBodySchema } from "./schema.ts";
import type { WayOut } from "./way_out.ts";
import {
  type Activities,
  type Balance,
  type BalanceView,
  type Deposited,
  type Refused,
  type TopUpLink,
  viewAfter,
  viewBalance,
} from "./view.ts";

interface LedgerRooms {
  deps: Deps;
  auth: Auth;
  post: Post;
  wayOut: WayOut;
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
  rooms: LedgerRooms,
  verb: "deposit" | "charge",
): Handler {
  return async ({ request, requestId, inTime }) => {
    const { deps, auth, post } = rooms;
    const caller = await auth.caller(request, "money");
    const body = parseWith(
      moneyBodySchema,
      (await inTime(readJsonBody(request, bodyBytesMax))).value,
    );
    const user = endUser(caller, request, { body: body.user });
    const { project } = caller.snapshot;
    if (verb === "deposit") requireOwnMoney(project);
    const ref = await findAccount(deps.kv, project, user);
    const refuse = (kind: Refusal, balance: BalanceView) =>
      refusedResponse(rooms, { request, requestId, project, user, amount: body.amount }, {
        kind,
        balance,
      });
    if (!ref) {
      return await refuse("authorization_required", viewBalance(zero, zero, project.currency));
    }
    const posted = await post[verb]({
      ref,
      amount: body.amount,
      metadata: body.metadata ?? null,
      key: readIdempotencyKey(request),
      origin: { trigger: byKey(caller) },
    });
    const message = verb === "charge" ? { message: "The charge was taken." } : {};
    return "balance" in posted
      ? await refuse(posted.kind, posted.balance)
      : bookedResponse(caller, posted, requestId, message);
  };
}

interface Refusing {
  request: Request;
  requestId: string;
  project: Project;
  user: string;
  amount: Amount;
}

async function refusedResponse(
  { deps, wayOut }: LedgerRooms,
  { request, requestId, project, user, amount }: Refusing,
  { kind, balance }: { kind: Refusal; balance: BalanceView },
): Promise<Response> {
  deps.committer.count(tallyRefusal(project.id, kind, deps.clock.now()));
  const offer = await wayOut(project, user, {
    refusal: kind,
    amount: formatAmount(amount),
    balance: balance.balance,
    languages: request.headers.get("accept-language"),
  });
  // Beyond the day's cap, what is missing is the person's leave.
  const reason = kind === "limit_reached" ? "authorization_required" : kind;
  const body: Refused = { success: false, reason, ...offer, ...balance };
  return jsonResponse(200, body, requestId);
}

/** Throws 400 `mode_conflict` where the money is a person's own, and no project's to give. */
function requireOwnMoney({ mode }: Project): void {
  if (mode === "default") return;
  const message = "In the shared mode users pay into their wallet themselves; send them the link " +
    "of 'GET /v1/user/balance/topup'.";
  throw badRequest(null, message, "mode_conflict");
}

function refund({ deps, auth, post }: LedgerRooms): Handler {
  return async ({ request, requestId, inTime }) => {
    const caller = await auth.caller(request, "money");
    const body = parseWith(
      refundBodySchema,
      (await inTime(readJsonBody(request, bodyBytesMax))).value,
    );
    const { project } = caller.snapshot;
    const named = body.user !== undefined || request.headers.has("x-service-user");
    const known = named || project.mode === "shared"
      ? endUser(caller, request, { body: body.user })
      : null;
    const account = known === null
      ? { projectId: project.id, user: "" }
      : await findAccount(deps.kv, project, known);
    const original = account && (await post.find(account, body.activityId));
    if (!original) throw notFound("activity");
    const posted = await post.refund({
      ref: { ...account, user: known ?? original.user },
      original,
      amount: body.amount ?? null,
      metadata: body.metadata ?? null,
      key: readIdempotencyKey(request),
      origin: { trigger: byKey(caller) },
    });
    if ("balance" in posted) throw new Error("a refund takes what there is");
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
  const body: Deposited = {
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
    const { project } = caller.snapshot;
    const { currency } = project;
    const ref = await findAccount(deps.kv, project, user);
    const { balance, held } = ref
      ? await readBalance(deps.kv, ref, deps.clock.now())
      : { balance: zero, held: zero };
    const body: Balance = { user, currency, ...viewBalance(balance, held, currency) };
    return jsonResponse(200, body, requestId);
  };
}

function topUp({ deps, auth, wayOut }: LedgerRooms): Handler {
  return async ({ request, requestId, query }) => {
    const caller = await auth.caller(request, "money");
    const user = endUser(caller, request, { query: query("user") });
    const { project } = caller.snapshot;
    const known = await findAccount(deps.kv, project, user);
    const refusal = known ? "insufficient_funds" : "authorization_required";
    const { url } = await wayOut(project, user, { refusal, balance: "0", languages: null });
    const body: TopUpLink = { url };
    return jsonResponse(200, body, requestId);
  };
}

function activities({ deps, auth }: LedgerRooms): Handler {
  return async ({ request, requestId, query }) => {
    const caller = await auth.caller(request, "money");
    const user = endUser(caller, request, { query: query("user") });
    const { project } = caller.snapshot;
    const { currency } = project;
    const page = { limit: readLimit(query("limit")), cursor: query("cursor") };
    const ref = await findAccount(deps.kv, project, user);
    const { entries, nextCursor } = ref
      ? await listActivities(deps.kv, ref, page)
      : { entries: [], nextCursor: null };
    if (!/\btext\/csv\b/.test(request.headers.get("accept") ?? "")) {
      const list = entries.map((entry) => toActivity(entry, currency));
      const body: Activities = { activities: list, nextCursor };
      return jsonResponse(200, body, requestId);
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
