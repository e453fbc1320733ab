import { ApiError } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import { least, parseAmount, zero } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import type { Trigger } from "../events/event.ts";
import type { AccountRef } from "../ledger/account.ts";
import { amountOf } from "../ledger/entry.ts";
import type { Refund } from "../ledger/posting.ts";
import {
  allStripeReversalsPrefix,
  stripePaymentKey,
  stripeReversalKey,
  stripeReversalsPrefix,
} from "../store/keys.ts";
import { emptyWrite, type Key, type Row } from "../store/kv.ts";
import { listAfter } from "../store/scan.ts";
import type { Taken } from "./operations.ts";
import type { PaywallRooms } from "./rooms.ts";
import { fromStripeUnits } from "./stripe.ts";
import type { Told } from "./stripe_event.ts";

/** What a payment at Stripe has become. */
export interface Payment {
  activityId: string;
  ref: AccountRef;
  currency: string;
}

/** Money that Stripe has paid back. */
export type Reversal = Extract<Told, { kind: "reversal" }>;

/** One whose payment is not booked yet. */
interface Kept {
  reversal: Reversal;
  /** In milliseconds since 1970. */
  keptAt: number;
}

type Rooms = Pick<PaywallRooms, "deps" | "post">;

/** What Stripe does. */
export const byStripe: Trigger = { source: "checkout", actorType: "system", actorId: "stripe" };

/** Far more than a payment has: each is told of at most a few times. */
const keptMax = 100;
/** For much longer than Stripe goes on telling of a payment: what is left was never ours. */
const keptLifetimeMs = 30 * 24 * 60 * 60 * 1000;
const rowsPerSweep = 100;

/**
 * Takes back what Stripe has paid back, as far as it is still there; the rest is a shortfall. Stripe
 * tells in any order: what comes before its payment is kept until that is booked.
 */
export async function takeBack(
  rooms: Rooms,
  merchantId: string,
  reversal: Reversal,
): Promise<Taken["outcome"]> {
  const { kv } = rooms.deps;
  const key = stripePaymentKey(merchantId, reversal.paymentIntent);
  for (;;) {
    const { value } = await kv.get(key);
    if (!value) {
      if (await keep(rooms.deps, { key, merchantId, reversal })) return "kept";
      continue;
    }
    const payment = fromBytes<Payment>(value);
    const outcome = await debit(rooms, { key, payment, reversal });
    if (outcome !== "renamed") return outcome;
  }
}

/** What was told of a payment before it was booked; done twice, it comes to the same. */
export async function takeBackKept(
  rooms: Rooms,
  merchantId: string,
  paymentIntent: string,
): Promise<void> {
  const { kv, committer } = rooms.deps;
  const prefix = stripeReversalsPrefix(merchantId, paymentIntent);
  for (const { key, value } of await kv.list({ prefix, limit: keptMax })) {
    if (value) await takeBack(rooms, merchantId, fromBytes<Kept>(value).reversal);
    await committer.commit({ ...emptyWrite(), deletes: [key] });
  }
}

/** False when the payment has been booked meanwhile. */
async function keep(
  { committer, clock }: Pick<Deps, "committer" | "clock">,
  { key, merchantId, reversal }: { key: Key; merchantId: string; reversal: Reversal },
): Promise<boolean> {
  const { paymentIntent, eventId } = reversal;
  const kept: Kept = { reversal, keptAt: clock.now() };
  const row = stripeReversalKey(merchantId, paymentIntent, eventId);
  const landed = await committer.commit({
    ...emptyWrite(),
    checks: [{ key, version: null }],
    sets: [{ key: row, value: toBytes(kept) }],
  });
  return landed !== null;
}

/** Says `renamed` where the payment has got a user's pseudonym meanwhile: nothing is booked then. */
async function debit(
  { post }: Rooms,
  { key, payment, reversal }: { key: Key; payment: Payment; reversal: Reversal },
): Promise<Taken["outcome"] | "renamed"> {
  const { activityId, ref, currency } = payment;
  const { eventId, reason, units } = reversal;
  const original = await post.find(ref, activityId);
  if (!original) return "ignored";
  const whole = parseAmount(amountOf(original)) ?? zero;
  const refund: Refund = {
    ref,
    // The payment of a user who is being forgotten is renamed before its entry.
    original: { ...original, user: ref.user },
    reads: [key],
    alongside(draft) {
      const now = draft.row(key);
      if (!now || fromBytes<Payment>(now).ref.user !== ref.user) throw new Renamed();
    },
    amount: least(fromStripeUnits(units, currency), whole),
    metadata: { source: "stripe", eventId, reason },
    key: `stripe:${eventId}`,
    origin: { trigger: byStripe },
    paid: true,
  };
  // A dispute after a refund names the whole again: then all that is left goes, or nothing.
  const attempts = [refund, { ...refund, amount: null }];
  for (const attempt of attempts) {
    try {
      await post.refund(attempt);
      return "debited";
    } catch (error) {
      if (isBookedBefore(error)) return "debited";
      if (error instanceof Renamed) return "renamed";
      if (!(error instanceof ApiError && error.code === "refund_exceeds_original")) throw error;
    }
  }
  return "ignored";
}

class Renamed extends Error {}

/**
 * Whether a booking failed because of another under its key. The key is what Stripe calls it, so the
 * other was for the very same: of another amount, or of a user who was forgotten since.
 */
export function isBookedBefore(error: unknown): boolean {
  return error instanceof ApiError && error.code === "idempotency_key_reused";
}

/**
 * Forgets what was kept for payments that never came: an account at Stripe may be used for more than
 * this service. A bounded part at each call, going on where it stopped.
 */
export function createReversalSweep(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
): () => Promise<void> {
  let after: Key | null = null;
  const isOver = ({ value }: Row) =>
    value !== null && clock.now() - fromBytes<Kept>(value).keptAt > keptLifetimeMs;
  return async () => {
    const prefix = allStripeReversalsPrefix;
    const rows = await listAfter(kv, prefix, { after, limit: rowsPerSweep });
    after = rows.length < rowsPerSweep ? null : rows.at(-1)?.key ?? null;
    const deletes = rows.filter(isOver).map(({ key }) => key);
    if (deletes.length > 0) await committer.commit({ ...emptyWrite(), deletes });
  };
}
