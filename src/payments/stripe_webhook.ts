import type { BodyBudget } from "../base/body_budget.ts";
import { readBytes } from "../base/body.ts";
import { ApiError, notFound } from "../base/errors.ts";
import { idempotencyKeyReused } from "../base/request.ts";
import type { Handler } from "../base/handler.ts";
import { toBytes } from "../base/json.ts";
import { formatAmount } from "../base/money.ts";
import { type NewEvent, newEvent } from "../events/event.ts";
import { checkId } from "../projects/admin_guard.ts";
import type { Project } from "../projects/schema.ts";
import { decodeAccount, requireNotClosed, walletUserOf } from "../ledger/account.ts";
import { accountKey, connectionKey, stripePaymentKey } from "../store/keys.ts";
import { instanceMerchant, type Merchant, merchantOf, type PaymentDeps } from "./merchant.ts";
import type { StripeReceipt } from "./api_doc.ts";
import { emptyPaymentTotals, type Payment } from "./payment.ts";
import {
  applyPendingReversals,
  applyReversal,
  isAlreadyRecorded,
  stripeTrigger,
} from "./reversals.ts";
import { paidSession, projectIdOfSession } from "./stripe.ts";
import { type CheckoutSession, readStripeEvent } from "./stripe_events.ts";

const eventBytesMax = 512 * 1024;

/**
 * `POST /v1/stripe/{projectId}`: Stripe's reports about a project's payments; `POST /v1/stripe`:
 * about payments into wallets. Each event counts once, however often it is sent. 400 when it is not
 * signed; Stripe then sends it again.
 */
export function stripeWebhook(services: PaymentDeps): Handler {
  return async ({ request, param, requestId, inTime, bodies }) => {
    const merchant = await merchantOfPath(services, param("projectId"));
    const raw = await inTime(readRaw(request, bodies));
    const signature = request.headers.get("stripe-signature") ?? "";
    const event = await merchant.account.readEvent(raw, signature);
    const outcome = await handleEvent(services, merchant, event);
    const body: StripeReceipt = { received: true, outcome };
    return Response.json(body, { headers: { "x-request-id": requestId } });
  };
}

/** Returns the project in the path, or this server where the path names none. */
async function merchantOfPath(services: PaymentDeps, projectId: string): Promise<Merchant> {
  if (projectId === "") {
    if (!services.deps.config.stripe) throw notFound("Stripe account of this server");
    return await instanceMerchant(services.deps);
  }
  const { project } = await services.projectCache.current(checkId(projectId, "project"));
  if (!project.stripe) throw notFound("Stripe account of this project");
  return await merchantOf(services, project);
}

async function readRaw(request: Request, bodies: BodyBudget): Promise<string> {
  const tooLarge = () => new ApiError(413, { message: "The event is too large." });
  const bytes = await readBytes(request, { bytesMax: eventBytesMax, tooLarge, bodies });
  return new TextDecoder().decode(bytes);
}

type Outcome = StripeReceipt["outcome"];

async function handleEvent(
  services: PaymentDeps,
  merchant: Merchant,
  event: { id: string; type: string },
): Promise<Outcome> {
  const parsed = readStripeEvent(event);
  if (parsed === null) return "ignored";
  return parsed.kind === "session"
    ? await recordPayment(services, merchant, parsed.session)
    : await applyReversal(services, merchant.id, parsed);
}

/** Records a paid session, once. A session that is not paid yet is reported again when it is. */
async function recordPayment(
  services: PaymentDeps,
  merchant: Merchant,
  session: CheckoutSession,
): Promise<Outcome> {
  const project = await projectOfPayment(services, merchant, session);
  const paid = project && paidSession(project, session);
  if (!paid) return "ignored";
  const { id, ref, amount, paymentIntent } = paid;
  const own = accountKey(project.id, ref.user);
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
    // The row of the payment tells it, and unlike that key, no caller can have written it.
    skipOlderKey: paymentKey !== null,
    paidExternally: true,
    origin: { trigger: stripeTrigger, source: "stripe", extraEvents: completed },
    reads: [...(ref.wallet ? [own] : []), ...(paymentKey ? [paymentKey] : [])],
    alongside(tx, entry) {
      const { projectId, user, wallet } = ref;
      // In a wallet, whose account is open, a user who is being erased would be named again.
      if (wallet) requireNotClosed(decodeAccount(tx.row(own)));
      // A user who was erased after the session was opened can be found, and erased, again.
      if (wallet) tx.put(connectionKey(wallet.personId, projectId, user), new Uint8Array());
      if (paymentKey === null) return;
      // An older version recorded it under another key.
      if (tx.row(paymentKey)) throw idempotencyKeyReused();
      const { currency } = project;
      const payment: Payment = { activityId: entry.id, ref, currency, since: emptyPaymentTotals };
      tx.put(paymentKey, toBytes(payment));
    },
  }).catch((error) => {
    if (!isAlreadyRecorded(error)) throw error;
  });
  if (paymentIntent !== null) await applyPendingReversals(services, merchant.id, paymentIntent);
  return "booked";
}

/** Returns the project that a session was created for; null where it is not this merchant's. */
async function projectOfPayment(
  { projectCache }: PaymentDeps,
  { id }: Merchant,
  session: CheckoutSession,
): Promise<Project | null> {
  const projectId = projectIdOfSession(session);
  if (projectId === null || (id !== "instance" && id !== projectId)) return null;
  try {
    return (await projectCache.current(projectId)).project;
  } catch (error) {
    // Another server may use the same Stripe account.
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  }
}
