import { isId } from "../base/ids.ts";
import type { Amount } from "../base/money.ts";
import type { UnbookedReason } from "../base/unbooked_reasons.ts";
import { checkUserId } from "../base/user_id.ts";
import type { AccountRef } from "../ledger/account.ts";
import type { Project } from "../projects/schema.ts";
import { fromStripeUnits } from "./stripe.ts";
import type { CheckoutSession } from "./stripe_events.ts";

/** A checkout session of ours: for whom and how much. */
export interface OurSession {
  id: string;
  ref: AccountRef;
  /** What was asked for: tax that came on top of it is not the user's money. */
  amount: Amount;
  paymentIntent: string | null;
  /** What was paid in all, in Stripe's units; absent where that is the amount. */
  paidUnits?: number;
}

/** What a checkout session requires: to record it, to wait for its payment, nothing, or help. */
type SessionState =
  | { kind: "paid" | "unpaid"; session: OurSession }
  | { kind: "ignored" }
  | { kind: "unbooked"; reason: UnbookedReason };

/** Returns the project that one of our sessions was created for, or null. */
export function projectIdOfSession({ metadata }: CheckoutSession): string | null {
  return metadata?.farebox_project ?? null;
}

/** Compares a session with what this project requested for it. */
export function readCheckoutSession(project: Project, session: CheckoutSession): SessionState {
  const { id, metadata, payment_status: status, amount_total: paidUnits, payment_intent } = session;
  if (status !== "paid" && status !== "unpaid") return { kind: "ignored" };
  const user = metadata?.farebox_user;
  if (user === undefined) return unbooked("missing_user");
  if (!isUserId(user)) return unbooked("invalid_user");
  const { currency } = project;
  const wallet = walletOf(session, currency);
  if (wallet === null || (wallet !== undefined) !== (project.mode === "shared")) {
    return unbooked("other_wallet");
  }
  if (session.currency !== currency) return unbooked("other_currency");
  const requested = metadata?.farebox_units;
  const units = possibleUnits(session).find((each) => String(each) === requested);
  if (units === undefined) return unbooked("other_amount");
  const ref: AccountRef = { projectId: project.id, user, ...(wallet ? { wallet } : {}) };
  const amount = fromStripeUnits(units, currency);
  const ours: OurSession = { id, ref, amount, paymentIntent: payment_intent ?? null };
  const hasMore = typeof paidUnits === "number" && paidUnits !== units;
  return { kind: status, session: hasMore ? { ...ours, paidUnits } : ours };
}

/**
 * Returns what a session may have been opened for, in Stripe's units: what was paid, without the
 * tax that came on top. Tax inside the price is a part of it. Empty where there is a discount.
 */
function possibleUnits(
  { amount_total: total, amount_subtotal: subtotal, total_details }: CheckoutSession,
): number[] {
  const { amount_tax, amount_discount, amount_shipping } = total_details ?? {};
  if (typeof total !== "number" || (amount_discount ?? 0) > 0) return [];
  if (typeof subtotal === "number") return subtotal <= total ? [total, subtotal] : [];
  return [total, total - (amount_tax ?? 0) - (amount_shipping ?? 0)];
}

function unbooked(reason: UnbookedReason): SessionState {
  return { kind: "unbooked", reason };
}

/** Whether a text can be a user's id. */
function isUserId(text: string): boolean {
  try {
    checkUserId(text, "user");
    return true;
  } catch {
    return false;
  }
}

/** Returns the wallet that a session pays into; undefined for none, null for an impossible one. */
function walletOf({ metadata }: CheckoutSession, currency: string): AccountRef["wallet"] | null {
  const { farebox_person: personId, farebox_connection: connectionId } = metadata ?? {};
  if (personId === undefined && connectionId === undefined) return undefined;
  const isPossible = isId("per", personId ?? "") && isId("con", connectionId ?? "");
  return isPossible && personId && connectionId ? { personId, currency, connectionId } : null;
}
