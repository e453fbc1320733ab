import { ApiError, badCursor, badRequest, notFound } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { parseWith, readJsonBody } from "../base/request.ts";
import { bodyBytesMax } from "../base/limits.ts";
import { jsonResponse } from "../base/response.ts";
import { type AdminGuard, checkId } from "../projects/admin_guard.ts";
import { type AuditActor, byOperator, recordAction } from "../projects/audit.ts";
import { type Reconciled, reconcileSchema } from "./api_doc.ts";
import { findProject, handleEvent } from "./handle_event.ts";
import { type Merchant, merchantOfPath, type PaymentDeps } from "./merchant.ts";
import { changeEventTypes } from "./stripe_events.ts";
import { claimedSession, isBooked } from "./unbooked.ts";

/** The services that reconciling depends on. */
export interface ReconcileDeps extends PaymentDeps {
  adminGuard: AdminGuard;
}

/** A page of a reconciliation. */
interface Page {
  merchant: Merchant;
  sinceMs: number;
  /** What to continue after; null at the start. */
  after: string | null;
  requestId: string;
  /** Leaves out sessions of projects that this server does not have: another one may have them. */
  onlyOwn?: boolean;
}

/**
 * `POST …/stripe/reconcile`: asks Stripe for paid sessions, then for refunds and disputes, and
 * records what is missing. One call reads one page at Stripe.
 */
export function reconcileStripe(services: ReconcileDeps): Handler {
  return services.adminGuard(async (incoming) => {
    const { requestId } = incoming;
    const merchant = await merchantOfRequest(services, incoming);
    const body = (await incoming.inTime(readJsonBody(incoming.request, bodyBytesMax))).value;
    const { since, cursor } = parseWith(reconcileSchema, body);
    const [, stage = "", after = ""] = /^(payments|changes)(?::(\w{1,255}))?$/.exec(
      cursor ?? "payments",
    ) ?? [];
    if (stage === "") throw badCursor();
    const page = { merchant, sinceMs: Date.parse(since), after: after || null, requestId };
    const reconciled = stage === "payments"
      ? await reconcileSessions(services, page)
      : await reconcileChanges(services, page);
    const by = byOperator("api", incoming.address());
    await writeAudit(services, { merchant, since, reconciled, by });
    return jsonResponse(200, reconciled, requestId, { "cache-control": "no-store" });
  });
}

async function merchantOfRequest(services: ReconcileDeps, incoming: Incoming): Promise<Merchant> {
  const projectId = incoming.param("projectId");
  if (projectId !== "") {
    const { project } = await services.projectCache.refresh(checkId(projectId, "project"));
    if (project.mode === "shared") {
      const message =
        "In the shared mode, payments are made to this server's own Stripe account: " +
        "use 'POST /v1/admin/stripe/reconcile'.";
      throw badRequest(null, message, "mode_conflict");
    }
    if (!project.stripe) throw notFound("Stripe account of this project");
  }
  return await merchantOfPath(services, projectId);
}

async function reconcileSessions(services: ReconcileDeps, page: Page): Promise<Reconciled> {
  const { counts, next } = await reconcilePayments(services, page);
  return { ...counts, nextCursor: next === null ? "changes" : `payments:${next}` };
}

/** Books the paid sessions of a page that are not booked yet. `next` is the next page's `after`. */
export async function reconcilePayments(
  services: PaymentDeps,
  page: Page,
): Promise<{ counts: Omit<Reconciled, "nextCursor">; next: string | null }> {
  const { merchant, sinceMs, after, requestId, onlyOwn } = page;
  const { items, next } = await merchant.account.listSessions({ sinceMs, after });
  const counts = { ...nothing, unbooked: new Array<Reconciled["unbooked"][number]>() };
  for (const object of items) {
    const event = { id: "reconciled", type: "checkout.session.completed", data: { object } };
    const claimed = claimedSession(event);
    const session = claimed?.sessionId ?? null;
    if (claimed === null || session === null) continue;
    if (onlyOwn && await findProject(services, claimed.projectId) === null) continue;
    counts.payments++;
    if (await isBooked(services.deps.kv, merchant.id, claimed)) {
      counts.bookedBefore++;
      continue;
    }
    const outcome = await handleEvent(services, { merchant, event, requestId }).catch((error) => {
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      return { reason: error.message };
    });
    if (outcome === "booked") counts.booked++;
    else if (typeof outcome === "object") counts.unbooked.push({ session, ...outcome });
  }
  return { counts, next };
}

const nothing = { payments: 0, booked: 0, bookedBefore: 0, changes: 0 };

/** Records the refunds and disputes of a page that are not recorded yet. */
async function reconcileChanges(services: ReconcileDeps, page: Page): Promise<Reconciled> {
  const { merchant, sinceMs, after, requestId } = page;
  const types = [...changeEventTypes];
  const { items, next } = await merchant.account.listEvents({ sinceMs, after, types });
  const reconciled: Reconciled = { ...nothing, unbooked: [], nextCursor: null };
  for (const event of items) {
    const outcome = await handleEvent(services, { merchant, event, requestId }).catch((error) => {
      // It is logged, and would only be refused again.
      if (!(error instanceof ApiError) || error.status >= 500) throw error;
      return null;
    });
    if (outcome === "debited" || outcome === "credited") reconciled.changes++;
  }
  return { ...reconciled, nextCursor: next === null ? null : `changes:${next}` };
}

async function writeAudit(
  { deps }: ReconcileDeps,
  { merchant: { id }, since, reconciled: { booked, changes }, by }: {
    merchant: Merchant;
    since: string;
    reconciled: Reconciled;
    by: AuditActor;
  },
): Promise<void> {
  if (booked === 0 && changes === 0) return;
  const detail = { since, booked, changes };
  const trail = id === "instance" ? null : id;
  await recordAction(deps, trail, { by, action: "stripe.reconciled", target: id, detail });
}
