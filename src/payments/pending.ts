import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, formatAmount, fromDecimal } from "../base/money.ts";
import type { AccountTx } from "../ledger/account_tx.ts";
import { newEvent } from "../events/event.ts";
import { decodeAccount, requireNotClosed, walletUserOf } from "../ledger/account.ts";
import { keyOperation } from "../ledger/key_issuer.ts";
import type { Project } from "../projects/schema.ts";
import {
  accountKey,
  allPendingPaymentsPrefix,
  idempotencyKey,
  pendingPaymentKey,
  pendingPaymentsPrefix,
} from "../store/keys.ts";
import { type ExpiringKind, keysWithExpiry, replacingExpiry } from "../store/expiry.ts";
import type { Key, Kv } from "../store/kv.ts";
import type { PaymentDeps } from "./merchant.ts";
import { stripeTrigger } from "./reversals.ts";
import type { OurSession } from "./session.ts";

/** A payment whose checkout is completed and whose money is not there, such as a bank transfer. */
interface PendingPayment {
  /** A payment that has failed is kept, since its events may arrive in any order. */
  state: "pending" | "failed";
  /** A decimal, in the project's currency. */
  amount: string;
  /** In milliseconds since 1970. */
  at: number;
}

/** How many the page of a user shows. */
const listedMax = 20;
/** Longer than any payment at Stripe takes. */
const pendingPaymentLifetimeMs = 30 * 24 * 60 * 60 * 1000;

/** Payments that are on their way, or of which nothing was heard any more. */
export const pendingPaymentRows: ExpiringKind = {
  prefix: allPendingPaymentsPrefix,
  endsAt: (value) => fromBytes<PendingPayment>(value).at + pendingPaymentLifetimeMs,
};

/** Removes the row of a payment that is booked; its key is one of those that `tx` has read. */
export function removePending(tx: AccountTx, key: Key): void {
  const value = tx.row(key);
  const keys = value ? keysWithExpiry(pendingPaymentRows, { key, value }) : [key];
  for (const each of keys) tx.remove(each);
}

/** Returns the row of a payment that is on its way. */
export function pendingKeyOf({ id, ref: { projectId, user } }: OurSession): Key {
  return pendingPaymentKey(projectId, user, id);
}

/**
 * Records that a payment is on its way, or that it has failed, with its event. Each counts once,
 * and not after the payment is booked.
 */
export async function recordPending(
  { deps, commit }: Pick<PaymentDeps, "deps" | "commit">,
  { project, session, state }: {
    project: Project;
    session: OurSession;
    state: PendingPayment["state"];
  },
): Promise<void> {
  const { kv, clock } = deps;
  const { ref, amount } = session;
  const key = pendingKeyOf(session);
  const booked = idempotencyKey(
    ref.projectId,
    keyOperation("deposit", "stripe"),
    `stripe:${session.id}`,
  );
  await commit(project.id, async () => {
    const rows = await kv.getMany([key, booked, accountKey(ref.projectId, ref.user)]);
    const [before, isBooked, account] = rows;
    // A user who is being erased would be named again.
    requireNotClosed(decodeAccount(account?.value ?? null));
    const known = before?.value && fromBytes<PendingPayment>(before.value).state;
    if (isBooked?.value || known === "failed" || known === state) return null;
    const row: PendingPayment = { state, amount: formatAmount(amount), at: clock.now() };
    const checks = rows.map(({ key, version }) => ({ key, version }));
    const written = { key, value: toBytes(row) };
    const write = {
      checks,
      ...replacingExpiry(pendingPaymentRows, written, before?.value ?? null),
    };
    return { write, events: [eventOf(session, project, state)] };
  });
}

function eventOf(
  { id, ref, amount }: OurSession,
  { currency }: Project,
  state: PendingPayment["state"],
) {
  return newEvent(`payment.${state}`, {
    trigger: stripeTrigger,
    subject: { type: "balance", id, externalId: ref.user },
  }, {
    checkoutSessionId: id,
    amount: formatAmount(amount),
    currency,
    walletUserId: walletUserOf(ref),
  });
}

/** Lists the amounts that are on their way to a user. */
export async function listPending(kv: Kv, projectId: string, user: string): Promise<Amount[]> {
  const prefix = pendingPaymentsPrefix(projectId, user);
  const rows = await kv.list({ prefix, limit: listedMax });
  const payments = rows.flatMap(({ value }) => (value ? [fromBytes<PendingPayment>(value)] : []));
  return payments.filter(({ state }) => state === "pending")
    .map(({ amount }) => fromDecimal(amount));
}
