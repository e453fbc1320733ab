import {
  balanceHeldRetrySeconds,
  type RefusalReason,
  refusalReasons,
} from "../../base/refusal_reasons.ts";
import { chargeReasons, depositReasons } from "../../base/entry_reasons.ts";
import { badRequest, notFound } from "../../base/errors.ts";
import type { Incoming } from "../../base/handler.ts";
import { bodyBytesMax } from "../../base/limits.ts";
import { type Amount, formatAmount, zero } from "../../base/money.ts";
import { parseWith, readIdempotencyKey, readJsonBody, readLimit } from "../../base/request.ts";
import { jsonResponse } from "../../base/response.ts";
import type { Deps } from "../../deps.ts";
import type { Trigger } from "../../events/event.ts";
import { type AuditActionName, type AuditActor, auditRow } from "../../projects/audit.ts";
import { type BudgetedKey, budgetsOfKey } from "../../projects/key_budget.ts";
import type { Project } from "../../projects/schema.ts";
import { countRefusedChargeHourly } from "../../summaries/hourly_counters.ts";
import { archivedActivity, mayBeArchived } from "../archived.ts";
import { entriesToCsv, findActivity, listActivities } from "../activities.ts";
import { findAccount, findLastAccount } from "../authorization.ts";
import { absoluteAmount, type Entry } from "../entry.ts";
import { type MoneyRecorder, type Recorded, requireNotReinstatement } from "../record.ts";
import type { Offer } from "../offer.ts";
import {
  chargeBodySchema,
  depositBodySchema,
  type MoneyBody,
  type RefundBody,
  refundBodySchema,
} from "../schema.ts";
import {
  type ActivityList,
  type BalanceView,
  type Deposited,
  type Refused,
  toActivity,
  viewAfter,
  viewBalance,
} from "./view.ts";
import type { AccountTx } from "../account_tx.ts";

/** What the handlers of money requests depend on. */
export interface LedgerDeps {
  deps: Deps;
  recorder: MoneyRecorder;
  offer: Offer;
}

/** The project, the request and the cause of a money operation. */
interface MoneyCall {
  project: Project;
  trigger: Trigger;
  incoming: Incoming;
  /**
   * The actor in the audit trail; absent for a project's own software, whose key makes such calls
   * all day.
   */
  by?: AuditActor;
  /** The key whose budget a charge counts toward. */
  budgetKey?: BudgetedKey;
}

const moneyBodies = { deposit: depositBodySchema, charge: chargeBodySchema };

/** Reads the body of a deposit or a charge. Throws 400, 408, 413, 415. */
export async function readMoneyBody(
  { request, inTime }: Incoming,
  verb: "deposit" | "charge",
): Promise<MoneyBody> {
  return parseWith(moneyBodies[verb], (await inTime(readJsonBody(request, bodyBytesMax))).value);
}

/** Reads the body of a refund. Throws 400, 408, 413, 415. */
export async function readRefundBody({ request, inTime }: Incoming): Promise<RefundBody> {
  return parseWith(refundBodySchema, (await inTime(readJsonBody(request, bodyBytesMax))).value);
}

/**
 * Deposits or charges, and responds. A charge that is refused for lack of money is a 200 with a
 * link. Throws 400 `mode_conflict`, 403 when archived, 422 `idempotency_key_reused`.
 */
export async function respondMoney(
  services: LedgerDeps,
  verb: "deposit" | "charge",
  call: MoneyCall & { user: string; body: MoneyBody },
): Promise<Response> {
  const { project, user, body, trigger, by, budgetKey, incoming: { request, requestId } } = call;
  if (verb === "deposit") requireOwnMoney(project);
  const ref = await findAccount(services.deps.kv, project, user);
  const wish = {
    amount: body.amount,
    metadata: body.metadata ?? null,
    key: readIdempotencyKey(request),
    // What is the default is the same request with and without it.
    reason: body.reason === defaultReasons[verb] ? undefined : body.reason,
  };
  const message = verb === "charge" ? { message: "The charge was taken." } : {};
  const refuse = (kind: RefusalReason, balance: BalanceView) =>
    refusedResponse(services, { ...call, amount: body.amount }, { kind, balance });
  if (!ref) {
    const earlier = await services.recorder.findRecorded("charge", {
      projectId: project.id,
      user,
      ...wish,
    });
    if (earlier) return recordedResponse(project, earlier, requestId, message);
    const kind = "authorization_required";
    const balance = viewBalance(zero, zero, project.currency);
    const nobodys = { projectId: project.id, user };
    await services.recorder.emitRefused({ ref: nobodys, ...wish, origin: { trigger } }, {
      kind,
      balance,
    });
    return await refuse(kind, balance);
  }
  const budgets = verb === "charge" && budgetKey
    ? budgetsOfKey(services.deps.kv, project.id, budgetKey)
    : [];
  const note = by && auditEntry(services.deps, { by, action: verb });
  const result = await services.recorder[verb]({
    ref,
    ...wish,
    byOperator: by !== undefined,
    origin: { trigger, isSilent: !sendsEvents(body) },
    budgets,
    ...(note ? { alongside: note } : {}),
  });
  return "balance" in result
    ? await refuse(result.kind, result.balance)
    : recordedResponse(project, result, requestId, message);
}

const defaultReasons = { deposit: depositReasons[0], charge: chargeReasons[0] };

/** Opening balances are no news, unless the caller asks for their events. */
function sendsEvents(body: MoneyBody): boolean {
  const asked = "sendEvents" in body ? body.sendEvents : undefined;
  return asked ?? body.reason !== "opening";
}

interface RefusedCall extends MoneyCall {
  user: string;
  amount: Amount;
}

async function refusedResponse(
  { deps, offer }: LedgerDeps,
  { project, user, amount, trigger, incoming: { request, requestId, note } }: RefusedCall,
  { kind, balance }: { kind: RefusalReason; balance: BalanceView },
): Promise<Response> {
  const { code, charge } = refusalReasons[kind];
  deps.metrics.refusedMoney.charge[code].add();
  note({ refused: code });
  deps.committer.count(countRefusedChargeHourly(project.id, code, deps.clock.now()));
  const offered = await offer(project, user, {
    reason: kind,
    trigger,
    amount: formatAmount(amount),
    balance: balance.balance,
    languages: request.headers.get("accept-language"),
  });
  const body: Refused = {
    success: false,
    reason: charge,
    ...offered,
    ...(kind === "held_by_running" ? { retryAfter: balanceHeldRetrySeconds } : {}),
    ...balance,
  };
  return jsonResponse(200, body, requestId, retryHeaders(body));
}

function retryHeaders({ retryAfter }: Refused): Record<string, string> {
  return retryAfter === undefined ? {} : { "retry-after": String(retryAfter) };
}

/** Throws 400 `mode_conflict` where the money belongs to a person's wallet, not to the project. */
function requireOwnMoney({ mode }: Project): void {
  if (mode === "default") return;
  const message = "In the shared mode, users pay into their own wallets. Send them the link " +
    "of 'GET /v1/user/balance/topup'.";
  throw badRequest(null, message, "mode_conflict");
}

/**
 * Refunds an entry, and responds. Without a user, the entry's own user is meant; in a wallet the
 * user has to be named. Throws 404 for an entry of another user, 400 beyond what is left to refund,
 * and
 * 400 `mode_conflict` for what a person paid into a wallet.
 */
export async function respondRefund(
  { deps, recorder }: LedgerDeps,
  { project, user, body, trigger, by, incoming }: MoneyCall & {
    user: string | null;
    body: RefundBody;
  },
): Promise<Response> {
  const { requestId, request } = incoming;
  const { activityId } = body;
  const found = await findActivity(deps.kv, project, { user: user ?? "", activityId });
  const wish = {
    amount: body.amount ?? null,
    metadata: body.metadata ?? null,
    key: readIdempotencyKey(request),
  };
  if (!found) {
    const subject = { projectId: project.id, user: user ?? "", activityId };
    const earlier = await recorder.findRecorded("refund", { ...subject, ...wish });
    if (!earlier) {
      const isArchived = await mayBeArchived(deps.kv, project.id, activityId);
      throw isArchived ? archivedActivity() : notFound("activity");
    }
    return refundedResponse(project, earlier, requestId);
  }
  requireNotReinstatement(found.entry);
  const result = await recorder.refund({
    ref: { ...found.ref, user: user ?? found.entry.user },
    original: found.entry,
    ...wish,
    origin: { trigger },
    ...(by ? { alongside: auditEntry(deps, { by, action: "refund" }) } : {}),
  });
  if ("balance" in result) throw new Error("a refund is not limited by the balance");
  return refundedResponse(project, result, requestId);
}

function refundedResponse(project: Project, recorded: Recorded, requestId: string): Response {
  const { refundedActivityId, shortfall } = recorded.entry;
  return recordedResponse(project, recorded, requestId, { refundedActivityId, shortfall });
}

function recordedResponse(
  { currency }: Project,
  { kind, entry }: Recorded,
  requestId: string,
  more: Record<string, unknown>,
): Response {
  const body: Deposited = {
    success: true,
    activityId: entry.id,
    user: entry.user,
    amount: absoluteAmount(entry),
    currency,
    ...viewAfter(entry, currency),
    ...more,
  };
  const replayed = kind === "replayed" ? { "idempotent-replayed": "true" } : undefined;
  return jsonResponse(200, body, requestId, replayed);
}

/** Responds with a page of a user's activities, newest first, as JSON or, if accepted, as CSV. */
export async function respondActivities(
  { deps }: Pick<LedgerDeps, "deps">,
  { project, user, incoming }: Omit<MoneyCall, "trigger"> & { user: string },
): Promise<Response> {
  const { request, requestId, query } = incoming;
  const { currency } = project;
  const page = { limit: readLimit(query("limit")), cursor: query("cursor") };
  const ref = await findLastAccount(deps.kv, project, user);
  const { entries, nextCursor } = ref
    ? await listActivities(deps.kv, ref, page)
    : { entries: [], nextCursor: null };
  if (!/\btext\/csv\b/.test(request.headers.get("accept") ?? "")) {
    const list = entries.map((entry) => toActivity(entry, currency));
    const body: ActivityList = { activities: list, nextCursor };
    return jsonResponse(200, body, requestId);
  }
  return new Response(entriesToCsv(entries, currency), {
    headers: {
      "content-type": "text/csv; charset=utf-8",
      "x-request-id": requestId,
      ...(nextCursor ? { "x-next-cursor": nextCursor } : {}),
    },
  });
}

/**
 * Returns a function that writes the audit row together with an entry that a person recorded by
 * hand.
 */
export function auditEntry(
  deps: Pick<Deps, "id" | "clock">,
  { by, action, reason = null }: {
    by: AuditActor;
    action: AuditActionName;
    reason?: string | null;
  },
): (tx: AccountTx, entry: Entry) => void {
  return (tx, entry) => {
    const { user, id, refundedActivityId } = entry;
    const detail = {
      activityId: id,
      amount: absoluteAmount(entry),
      ...(refundedActivityId === null ? {} : { refundedActivityId }),
      ...(reason === null ? {} : { reason }),
    };
    const { project } = tx.snapshot;
    const { key, value } = auditRow(deps, project.id, { by, action, target: user, detail });
    tx.put(key, value);
  };
}
