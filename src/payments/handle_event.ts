import { ApiError } from "../base/errors.ts";
import { toBytes } from "../base/json.ts";
import { formatAmount } from "../base/money.ts";
import { idempotencyKeyReused } from "../base/request.ts";
import type { UnbookedReason } from "../base/unbooked_reasons.ts";
import { type NewEvent, newEvent } from "../events/event.ts";
import { decodeAccount, requireNotClosed, walletUserOf } from "../ledger/account.ts";
import type { Project } from "../projects/schema.ts";
import { accountKey, connectionKey, stripePaymentKey, unbookedPaymentKey } from "../store/keys.ts";
import type { StripeReceipt } from "./api_doc.ts";
import type { Merchant, PaymentDeps } from "./merchant.ts";
import { emptyPaymentTotals, type Payment } from "./payment.ts";
import { pendingKeyOf, recordPending, removePending } from "./pending.ts";
import {
  applyPendingReversals,
  applyReversal,
  isAlreadyRecorded,
  stripeTrigger,
} from "./reversals.ts";
import { type OurSession, projectIdOfSession, readCheckoutSession } from "./session.ts";
import {
  type CheckoutReport,
  type CheckoutSession,
  type PaymentChange,
  readStripeEvent,
} from "./stripe_events.ts";
import { claimedSession } from "./unbooked.ts";

/** Another text cannot be a project's id, and may be too long for a key. */
const projectIdPattern = /^pw_\w{1,61}$/;

type Outcome = StripeReceipt["outcome"];

/** An event that is Stripe's, and who takes its payment. */
interface SignedEvent {
  merchant: Merchant;
  event: unknown;
  requestId: string;
}

/** Processes an event of Stripe's. Each counts once. Throws 400 for one that makes no sense. */
export async function handleEvent(services: PaymentDeps, signed: SignedEvent): Promise<Outcome> {
  const { merchant, event } = signed;
  const parsed = await orReport(services, signed, () => readStripeEvent(event));
  if (parsed === null) return "ignored";
  if (parsed.kind !== "session") {
    if (isOtherMode(signed)) throw refuseChange(services, signed, parsed);
    return await applyReversal(services, merchant.id, parsed);
  }
  return await orReport(services, signed, () => handleSession(services, signed, parsed));
}

/** Reports the paid session of a signed event that could not be handled. */
async function orReport<T>(
  services: PaymentDeps,
  signed: SignedEvent,
  work: () => T | Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const isOdd = error instanceof ApiError && error.code === "unexpected_event";
    if (!(error instanceof UnbookedError)) {
      const cause = error instanceof ApiError ? error.code : error;
      await report(services, signed, { reason: isOdd ? "unexpected_event" : "failed", cause });
    }
    throw error;
  }
}

async function report(
  { reportUnbooked }: PaymentDeps,
  { merchant, event, requestId }: SignedEvent,
  { reason, currency = null, cause }: {
    reason: UnbookedReason;
    currency?: string | null;
    cause?: unknown;
  },
): Promise<void> {
  const claimed = claimedSession(event);
  if (claimed === null) return;
  const told = { requestId, merchantId: merchant.id, claimed, reason, currency };
  await reportUnbooked({ ...told, cause });
}

/**
 * Whether an event is of Stripe's test mode and the account's key is live, or the reverse: then no
 * such money has come.
 */
function isOtherMode({ merchant: { account }, event }: SignedEvent): boolean {
  const { livemode, data } = Object(event);
  const isLive = livemode ?? Object(Object(data).object).livemode;
  return account.isLive !== null && typeof isLive === "boolean" && isLive !== account.isLive;
}

/** Reports a refund or dispute of the other mode, and returns the error to answer with. */
function refuseChange(
  { deps: { log, metrics } }: PaymentDeps,
  { merchant, requestId }: SignedEvent,
  { eventId, paymentIntent, reason: type }: PaymentChange,
): ApiError {
  const reason = "other_mode";
  metrics.unbookedPayments[reason].add();
  const about = { requestId, merchant: merchant.id, paymentIntent, eventId, type };
  log("error", "refund_not_booked", { ...about, reason });
  return new UnbookedError(reason);
}

/** Records a paid session, once. One that is not paid yet is shown as on its way. */
async function handleSession(
  services: PaymentDeps,
  signed: SignedEvent,
  { session, hasFailed }: CheckoutReport,
): Promise<Outcome> {
  const project = await projectOfSession(services, signed, session);
  if (project === null) return "ignored";
  if (isOtherMode(signed)) {
    return await refuseSession(services, signed, { project, session, reason: "other_mode" });
  }
  const state = readCheckoutSession(project, session);
  switch (state.kind) {
    case "paid":
      if (hasFailed) return "ignored";
      return await recordPayment(services, signed.merchant, { project, paid: state.session });
    case "unpaid": {
      const pending = { project, session: state.session };
      await recordPending(services, { ...pending, state: hasFailed ? "failed" : "pending" });
      return "ignored";
    }
    case "ignored":
      return "ignored";
    case "unbooked":
      return await refuseSession(services, signed, { project, session, reason: state.reason });
  }
}

/** Throws 400, unless the session may concern another server with the same Stripe account. */
async function refuseSession(
  services: PaymentDeps,
  signed: SignedEvent,
  { project, session, reason }: {
    project: Project;
    session: CheckoutSession;
    reason: UnbookedReason;
  },
): Promise<Outcome> {
  if (session.payment_status === "paid") {
    await report(services, signed, { reason, currency: project.currency });
  }
  if (reason === "missing_user" || reason === "other_wallet") return "ignored";
  const isOfAny = reason === "invalid_user" || reason === "other_mode";
  if (session.payment_status !== "paid" && !isOfAny) return "ignored";
  throw new UnbookedError(reason);
}

const usualMessage = "The session's amount or currency is not the one that was requested.";
const unbookedMessages: Partial<Record<UnbookedReason, string>> = {
  invalid_user: "The session names a user that cannot exist.",
  other_mode: "The event is of Stripe's test mode and the key here is live, or the reverse.",
};

/** A paid session that has been reported as not booked, or another event of the other mode. */
class UnbookedError extends ApiError {
  constructor(reason: UnbookedReason) {
    super(400, { message: unbookedMessages[reason] ?? usualMessage, code: "invalid_value" });
  }
}

async function recordPayment(
  services: PaymentDeps,
  merchant: Merchant,
  { project, paid }: { project: Project; paid: OurSession },
): Promise<Outcome> {
  const { id, ref, amount, paymentIntent, paidUnits } = paid;
  const own = accountKey(project.id, ref.user);
  const pending = pendingKeyOf(paid);
  const paymentKey = paymentIntent === null ? null : stripePaymentKey(merchant.id, paymentIntent);
  const completed = (): NewEvent[] => [
    newEvent("stripe.checkout.session.completed", {
      trigger: stripeTrigger,
      subject: { type: "balance", id, externalId: ref.user },
    }, {
      checkoutSessionId: id,
      amount: formatAmount(amount),
      currency: project.currency,
      walletUserId: walletUserOf(ref),
    }),
  ];
  await services.recorder.deposit({
    ref,
    amount,
    metadata: { source: "stripe", checkoutSessionId: id },
    key: `stripe:${id}`,
    issuer: "stripe",
    paidExternally: true,
    origin: { trigger: stripeTrigger, source: "stripe", extraEvents: completed },
    reads: [pending, ...(ref.wallet ? [own] : []), ...(paymentKey ? [paymentKey] : [])],
    alongside(tx, entry) {
      const { projectId, user, wallet } = ref;
      // In a wallet, whose account is open, a user who is being erased would be named again.
      if (wallet) requireNotClosed(decodeAccount(tx.row(own)));
      // A user who was erased after the session was opened can be found, and erased, again.
      if (wallet) tx.put(connectionKey(wallet.personId, projectId, user), new Uint8Array());
      tx.remove(unbookedPaymentKey(merchant.id, id));
      removePending(tx, pending);
      if (paymentKey === null) return;
      // A payment counts once, whatever session names it.
      if (tx.row(paymentKey)) throw idempotencyKeyReused();
      const { currency } = project;
      const payment: Payment = { activityId: entry.id, ref, currency, since: emptyPaymentTotals };
      tx.put(paymentKey, toBytes(paidUnits === undefined ? payment : { ...payment, paidUnits }));
    },
  }).catch((error) => {
    if (!isAlreadyRecorded(error)) throw error;
  });
  if (paymentIntent !== null) await applyPendingReversals(services, merchant.id, paymentIntent);
  return "booked";
}

/** Returns the project that a session was created for; null where it is not this merchant's. */
async function projectOfSession(
  services: PaymentDeps,
  signed: SignedEvent,
  session: CheckoutSession,
): Promise<Project | null> {
  const projectId = projectIdOfSession(session);
  if (projectId === null) return null;
  const { id } = signed.merchant;
  const project = await findProject(services, projectId);
  if (project && (id === "instance" || id === projectId)) return project;
  // Each of the projects that share a Stripe account is told of all its sessions. Another server
  // may use the account too.
  const isToldItself = project !== null && (project.stripe !== null || project.mode === "shared");
  if (!isToldItself) {
    const reason = project === null ? "unknown_project" : "no_stripe_account";
    await report(services, signed, { reason, currency: project?.currency ?? null });
  }
  return null;
}

/** Finds a project by an id from a session, which may be any text; null where there is none. */
export async function findProject(
  { projectCache }: PaymentDeps,
  projectId: string | null,
): Promise<Project | null> {
  if (projectId === null || !projectIdPattern.test(projectId)) return null;
  try {
    return (await projectCache.current(projectId)).project;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}
