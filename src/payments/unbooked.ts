import { errorFields } from "../base/errors.ts";
import { fromBytes, isObject, toBytes } from "../base/json.ts";
import { formatAmount } from "../base/money.ts";
import type { UnbookedReason } from "../base/unbooked_reasons.ts";
import type { Deps } from "../deps.ts";
import type { Project } from "../projects/schema.ts";
import { keyOperation } from "../ledger/key_issuer.ts";
import {
  allUnbookedPaymentsPrefix,
  idempotencyKey,
  stripePaymentKey,
  unbookedPaymentKey,
  unbookedPaymentsPrefix,
} from "../store/keys.ts";
import { emptyWrite, type Kv } from "../store/kv.ts";
import { type ExpiringKind, withExpiry } from "../store/expiry.ts";
import { fromStripeUnits } from "./stripe.ts";
import { isSessionEvent } from "./stripe_events.ts";

/** A paid session that Stripe has reported and that is not booked. */
export interface UnbookedPayment {
  sessionId: string;
  /** The project's id in the session's metadata; null where there is none. */
  projectId: string | null;
  user: string | null;
  paid: MoneyText | null;
  requested: MoneyText | null;
  reason: UnbookedReason;
  /** In milliseconds since 1970. */
  firstAt: number;
  lastAt: number;
  /** How often it was reported. */
  count: number;
}

/** An amount in a currency. */
export interface MoneyText {
  amount: string;
  currency: string;
}

/** What an event claims about a session, whether or not it is signed and well-formed. */
interface ClaimedSession extends
  Pick<
    UnbookedPayment,
    "projectId" | "user" | "paid"
  > {
  sessionId: string | null;
  paymentIntent: string | null;
  requestedUnits: number | null;
}

/** A payment that is not booked, and why. */
interface UnbookedReport {
  requestId: string;
  /** Who takes the payment. */
  merchantId: string;
  claimed: ClaimedSession;
  reason: UnbookedReason;
  /** The currency of the project, if it is known. */
  currency: string | null;
  cause?: unknown;
}

/** Logs and counts a payment that is not booked, and stores it for the console. */
export type ReportUnbooked = (report: UnbookedReport) => Promise<void>;

/** How many a page of the console shows. */
const listedMax = 500;
const textMax = 256;
const unbookedLifetimeMs = 90 * 24 * 60 * 60 * 1000;

/** Reports about payments that are not booked. */
export const unbookedPaymentRows: ExpiringKind = {
  prefix: allUnbookedPaymentsPrefix,
  endsAt: (value) => fromBytes<UnbookedPayment>(value).lastAt + unbookedLifetimeMs,
};

/** Creates the reports of payments that are not booked. Only Stripe's own word may get here. */
export function createReportUnbooked(
  deps: Pick<Deps, "kv" | "committer" | "clock" | "log" | "metrics">,
): ReportUnbooked {
  return async (report) => {
    const { reason, claimed, merchantId, requestId, currency, cause } = report;
    const { requestedUnits: units, paymentIntent, ...session } = withoutForgotten(claimed, cause);
    const requested = units === null || currency === null ? null : moneyOf(units, currency);
    const isBefore = await isBooked(deps.kv, merchantId, claimed).catch(() => false);
    if (isBefore) return;
    deps.metrics.unbookedPayments[reason].add();
    const { sessionId, projectId: project, user, paid } = session;
    const whose = { requestId, project, merchant: merchantId, session: sessionId, paymentIntent };
    const why = {
      reason,
      isSigned: true,
      ...(cause === undefined ? {} : { cause: String(cause) }),
    };
    deps.log("error", "payment_not_booked", { ...whose, user, paid, requested, ...why });
    if (sessionId === null) return;
    const row = { ...session, sessionId, requested, reason };
    await store(deps, merchantId, row).catch((error) =>
      deps.log("warn", "unbooked_payment_not_stored", errorFields(error))
    );
  };
}

/** A user who is being forgotten is named in no record that is written meanwhile. */
function withoutForgotten(claimed: ClaimedSession, cause: unknown): ClaimedSession {
  return cause === "user_being_forgotten" ? { ...claimed, user: null } : claimed;
}

/** Whether the session is booked: an old event may be sent again, with an outdated signature. */
export async function isBooked(
  kv: Kv,
  merchantId: string,
  { sessionId, projectId, paymentIntent }: ClaimedSession,
): Promise<boolean> {
  const keys = [
    ...(paymentIntent ? [stripePaymentKey(merchantId, paymentIntent)] : []),
    ...(projectId && sessionId
      ? [idempotencyKey(projectId, keyOperation("deposit", "stripe"), `stripe:${sessionId}`)]
      : []),
  ];
  if (keys.length === 0) return false;
  return (await kv.getMany(keys)).some(({ value }) => value !== null);
}

async function store(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
  merchantId: string,
  told: Omit<UnbookedPayment, "firstAt" | "lastAt" | "count">,
): Promise<void> {
  const key = unbookedPaymentKey(merchantId, told.sessionId);
  const { value, version } = await kv.get(key);
  const before = value && fromBytes<UnbookedPayment>(value);
  const lastAt = clock.now();
  const { firstAt = lastAt, count = 0 } = before ?? {};
  const row: StoredUnbooked = { ...told, firstAt, lastAt, count: count + 1, isSigned: true };
  const sets = withExpiry(unbookedPaymentRows, { key, value: toBytes(row) });
  await committer.commit({ ...emptyWrite(), checks: [{ key, version }], sets });
}

/**
 * A row of 0.9.0 may be a claim that nobody has signed: those are not listed. Version 1.1 may drop
 * it.
 */
type StoredUnbooked = UnbookedPayment & { isSigned: boolean };

/** Lists the payments to one merchant that are not booked, the last reported first. */
export async function listUnbooked(kv: Kv, merchantId: string): Promise<UnbookedPayment[]> {
  const rows = await kv.list({ prefix: unbookedPaymentsPrefix(merchantId), limit: listedMax });
  return rows.flatMap(({ value }) => (value ? [fromBytes<StoredUnbooked>(value)] : []))
    .filter(({ isSigned }) => isSigned)
    .sort((a, b) => b.lastAt - a.lastAt);
}

/** Returns who takes the payments of a project's users: the project, or this server. */
export function merchantIdOf({ id, mode }: Pick<Project, "id" | "mode">): string {
  return mode === "shared" ? "instance" : id;
}

/** Lists the last payments of a project's users that are not booked. */
export async function unbookedOfProject(kv: Kv, project: Project): Promise<UnbookedPayment[]> {
  const merchantId = merchantIdOf(project);
  const rows = await listUnbooked(kv, merchantId);
  return merchantId === project.id
    ? rows
    : rows.filter(({ projectId }) => projectId === project.id);
}

/** Reads what an event's text claims; null unless it reports that a session of ours is paid. */
export function readClaim(raw: string): ClaimedSession | null {
  try {
    return claimedSession(JSON.parse(raw));
  } catch {
    return null;
  }
}

/** Reads what an event claims about a paid session of ours; null for anything else. */
export function claimedSession(event: unknown): ClaimedSession | null {
  const { type, data } = Object(event);
  const session = Object(data).object;
  if (!isSessionEvent(type) || !isObject(session)) return null;
  const metadata = Object(session.metadata);
  const projectId = textOf(metadata.farebox_project);
  if (session.payment_status !== "paid" || projectId === null) return null;
  const currency = textOf(session.currency);
  const paidUnits = unitsOf(session.amount_total);
  const { payment_intent: intent } = session;
  return {
    sessionId: textOf(session.id),
    projectId,
    user: textOf(metadata.farebox_user),
    paid: paidUnits === null || currency === null ? null : moneyOf(paidUnits, currency),
    paymentIntent: textOf(isObject(intent) ? intent.id : intent),
    requestedUnits: unitsOf(Number(metadata.farebox_units ?? NaN)),
  };
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" && value.isWellFormed()
    ? value.slice(0, textMax).toWellFormed()
    : null;
}

function unitsOf(value: unknown): number | null {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

function moneyOf(units: number, currency: string): MoneyText {
  return { amount: formatAmount(fromStripeUnits(units, currency)), currency };
}
