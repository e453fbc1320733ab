import type { EntryReason } from "../base/entry_reasons.ts";
import { ApiError } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, formatAmount, fromDecimal, zero } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import type { Trigger } from "../events/event.ts";
import { absoluteAmount, type Entry } from "../ledger/entry.ts";
import type { RefundRequest, Reinstatement } from "../ledger/record.ts";
import { sameBytes } from "../store/batch.ts";
import {
  allStripeReversalsPrefix,
  stripePaymentKey,
  stripeReversalKey,
  stripeReversalsPrefix,
} from "../store/keys.ts";
import { emptyWrite, type Key, type Row } from "../store/kv.ts";
import { type ExpiringKind, keysWithExpiry, withExpiry } from "../store/expiry.ts";
import type { StripeReceipt } from "./api_doc.ts";
import {
  applyChange,
  decodePayment,
  outstanding,
  type Payment,
  type PaymentTotals,
  wasDebited,
} from "./payment.ts";
import type { PaymentDeps } from "./merchant.ts";
import type { PaymentChange } from "./stripe_events.ts";

/** A change of a payment that is not recorded yet. */
interface PendingReversal {
  reversal: PaymentChange;
  /** In milliseconds since 1970. */
  keptAt: number;
}

/** Much longer than Stripe keeps reporting about a payment: what remains was never ours. */
const pendingLifetimeMs = 30 * 24 * 60 * 60 * 1000;

/**
 * Changes whose payments never came: a Stripe account may be used for more than this service.
 */
export const reversalRows: ExpiringKind = {
  prefix: allStripeReversalsPrefix,
  endsAt: (value) => fromBytes<PendingReversal>(value).keptAt + pendingLifetimeMs,
};

type Services = Pick<PaymentDeps, "deps" | "recorder">;
type Outcome = StripeReceipt["outcome"];

/** Stripe, as the cause of an event. */
export const stripeTrigger: Trigger = {
  source: "checkout",
  actorType: "system",
  actorId: "stripe",
};

/** Far more reversals than a payment has: Stripe reports each at most a few times. */
const pendingReversalsMax = 100;

/**
 * Takes back what Stripe has refunded, as far as it has not been spent; the rest is a shortfall.
 * Reinstates what was taken for a dispute that is won. Stripe reports in any order and repeatedly,
 * so what is recorded follows from everything that was reported. A change that arrives before its
 * payment is stored until the payment is recorded.
 */
export async function applyReversal(
  services: Services,
  merchantId: string,
  change: PaymentChange,
): Promise<Outcome> {
  const key = stripePaymentKey(merchantId, change.paymentIntent);
  for (;;) {
    const row = await services.deps.kv.get(key);
    if (!row.value) {
      if (await storePending(services.deps, { key, merchantId, change })) return "kept";
      continue;
    }
    const outcome = await recordChange(services, row, change).catch((error) => {
      if (error instanceof StalePayment) return null;
      throw error;
    });
    if (outcome !== null) return outcome;
  }
}

/** Applies reversals that Stripe reported before the payment was booked. Idempotent. */
export async function applyPendingReversals(
  services: Services,
  merchantId: string,
  paymentIntent: string,
): Promise<void> {
  const { kv, committer } = services.deps;
  const prefix = stripeReversalsPrefix(merchantId, paymentIntent);
  for (const { key, value } of await kv.list({ prefix, limit: pendingReversalsMax })) {
    if (value) {
      const { reversal } = fromBytes<PendingReversal>(value);
      await applyReversal(services, merchantId, reversal).catch((error) => {
        // It is logged, and would only be refused again.
        if (!(error instanceof OtherCurrency)) throw error;
      });
    }
    const deletes = value ? keysWithExpiry(reversalRows, { key, value }) : [key];
    await committer.commit({ ...emptyWrite(), deletes });
  }
}

/** Returns false when the payment has been recorded in between. */
async function storePending(
  { committer, clock }: Pick<Deps, "committer" | "clock">,
  { key, merchantId, change }: { key: Key; merchantId: string; change: PaymentChange },
): Promise<boolean> {
  const { paymentIntent, eventId } = change;
  const kept: PendingReversal = { reversal: change, keptAt: clock.now() };
  const row = stripeReversalKey(merchantId, paymentIntent, eventId);
  const landed = await committer.commit({
    ...emptyWrite(),
    checks: [{ key, version: null }],
    sets: withExpiry(reversalRows, { key: row, value: toBytes(kept) }),
  });
  return landed !== null;
}

/** Updates the ledger to this change; null, or a throw, where the payment has changed. */
async function recordChange(
  services: Services,
  row: Row,
  change: PaymentChange,
): Promise<Outcome | null> {
  const payment = decodePayment(row.value ?? new Uint8Array());
  const { ref, activityId } = payment;
  requireSameCurrency(services, { row, payment, change });
  const isBack = change.kind === "failed refund" || change.kind === "reinstatement";
  const done = isBack ? "credited" : "debited";
  const since = applyChange(payment, change);
  if (since === null) return wasDebited(payment, change) ? done : "ignored";
  const original = await services.recorder.findEntry(ref, activityId);
  if (!original) return "ignored";
  const whole = fromDecimal(absoluteAmount(original));
  const { take, give, recovered } = outstanding(payment, since, whole);
  const settling = reversalRequest({ row, payment, original, since, change });
  if (take > 0n && await recordRefund(services, settling(take))) return done;
  if (give > 0n || recovered > 0n) {
    return await recordReinstatement(services, settling(give, recovered), done);
  }
  const write = { ...emptyWrite(), checks: [{ key: row.key, version: row.version }] };
  const sets = [{ key: row.key, value: toBytes({ ...payment, since }) }];
  return (await services.deps.committer.commit({ ...write, sets })) === null ? null : "ignored";
}

/** A refund or dispute in another currency than its payment: its amount means nothing here. */
class OtherCurrency extends ApiError {
  constructor() {
    const message = "The currency is not the one of the payment that this event is about.";
    super(400, { message, code: "invalid_value" });
  }
}

function requireSameCurrency(
  { deps: { log, metrics } }: Services,
  { row, payment, change }: { row: Row; payment: Payment; change: PaymentChange },
): void {
  const { currency, eventId, paymentIntent, reason: type } = change;
  if (currency === undefined || currency === payment.currency) return;
  const { ref: { projectId: project, user } } = payment;
  const about = { project, merchant: row.key[1], paymentIntent, user, eventId, type };
  const units = "units" in change ? change.units : null;
  metrics.unbookedPayments.other_refund_currency.add();
  const money = { units, currency, requested: { currency: payment.currency } };
  log("error", "refund_not_booked", { ...about, ...money, reason: "other_refund_currency" });
  throw new OtherCurrency();
}

interface ReversalContext {
  row: Row;
  payment: Payment;
  original: Entry;
  since: PaymentTotals;
  change: PaymentChange;
}

/** Returns the entry of a payment's change, written together with the payment's new totals. */
function reversalRequest(
  { row, payment, original, since, change }: ReversalContext,
) {
  const { ref } = payment;
  const { eventId, reason } = change;
  return (amount: Amount, recovered: Amount = zero): Reinstatement => ({
    ref,
    // The payment of a user who is being erased is renamed before its entry.
    original: { ...original, user: ref.user },
    reads: [row.key],
    alongside(tx, entry) {
      const now = tx.row(row.key);
      if (!now || !row.value || !sameBytes(now, row.value)) throw new StalePayment();
      const after: Payment = { ...payment, since: totalsAfterEntry(since, entry) };
      tx.put(row.key, toBytes(after));
    },
    amount,
    recovered,
    reason: bookedReason(change),
    metadata: { source: "stripe", eventId, reason },
    key: `stripe:${eventId}`,
    issuer: "stripe",
    origin: { trigger: stripeTrigger, source: "stripe" },
    paidExternally: true,
  });
}

/** Why a payment's change is booked: what a dispute moves is told apart. */
function bookedReason(change: PaymentChange): EntryReason {
  if (change.kind === "reinstatement") return "dispute_won";
  return change.kind === "reversal" && change.disputeId !== undefined ? "dispute" : "reversal";
}

/**
 * The payment has changed, or its user was replaced by a pseudonym: the stale state must not be
 * recorded.
 */
class StalePayment extends Error {}

function totalsAfterEntry(since: PaymentTotals, { delta, shortfall }: Entry): PaymentTotals {
  const taken = fromDecimal(since.taken) - fromDecimal(delta);
  const booked = fromDecimal(since.booked) - fromDecimal(delta) + fromDecimal(shortfall);
  return { ...since, taken: formatAmount(taken), booked: formatAmount(booked) };
}

/** Returns false where nothing is left to refund. */
async function recordRefund({ recorder }: Services, refund: Reinstatement): Promise<boolean> {
  // The project may have refunded a part itself: then the rest is refunded.
  const attempts: RefundRequest[] = [refund, { ...refund, amount: null }];
  for (const attempt of attempts) {
    try {
      await recorder.refund(attempt);
      return true;
    } catch (error) {
      if (isAlreadyRecorded(error)) return true;
      if (!(error instanceof ApiError && error.code === "refund_exceeds_original")) throw error;
    }
  }
  return false;
}

async function recordReinstatement(
  services: Services,
  giving: Reinstatement,
  done: Outcome,
): Promise<Outcome> {
  await services.recorder.reinstate(giving).catch((error) => {
    if (!isAlreadyRecorded(error)) throw error;
  });
  return done;
}

/**
 * Whether an operation failed because another is recorded under its key. The key is Stripe's id, so
 * the other was for the same change: with another amount, or of a user who was erased since.
 */
export function isAlreadyRecorded(error: unknown): boolean {
  return error instanceof ApiError && error.code === "idempotency_key_reused";
}
