import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import { keysWithExpiry } from "../store/expiry.ts";
import {
  pendingPaymentsPrefix,
  stripePaymentsPrefix,
  unbookedPaymentsPrefix,
} from "../store/keys.ts";
import type { Payment } from "./payment.ts";
import { pendingPaymentRows } from "./pending.ts";
import { type UnbookedPayment, unbookedPaymentRows } from "./unbooked.ts";

/**
 * Replaces a user by the pseudonym in their Stripe payments, to the project's own account and to
 * this server's. The rows stay: a payment that is refunded later is still taken out of the books.
 * Reports about payments that are not booked or on their way are deleted.
 */
export function createPaymentErasers({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser[] {
  const eraserOf = (name: string, merchantOf: (projectId: string) => string): Eraser =>
    eraseRows({
      name,
      kv,
      committer,
      prefix: ({ projectId }) => stripePaymentsPrefix(merchantOf(projectId)),
      rewrite({ key, value }, { projectId, user, pseudonym }) {
        const payment = value && fromBytes<Payment>(value);
        if (payment?.ref.projectId !== projectId || payment.ref.user !== user) return null;
        const renamed: Payment = { ...payment, ref: { ...payment.ref, user: pseudonym } };
        return { sets: [{ key, value: toBytes(renamed) }], deletes: [] };
      },
    });
  const unbookedOf = (name: string, merchantOf: (projectId: string) => string): Eraser =>
    eraseRows({
      name,
      kv,
      committer,
      prefix: ({ projectId }) => unbookedPaymentsPrefix(merchantOf(projectId)),
      rewrite({ key, value }, { projectId, user }) {
        const unbooked = value && fromBytes<UnbookedPayment>(value);
        const isTheirs = unbooked?.projectId === projectId && unbooked.user === user;
        if (!value || !isTheirs) return null;
        return { sets: [], deletes: keysWithExpiry(unbookedPaymentRows, { key, value }) };
      },
    });
  const pending = eraseRows({
    name: "pendingPayments",
    kv,
    committer,
    prefix: ({ projectId, user }) => pendingPaymentsPrefix(projectId, user),
    rewrite: ({ key, value }) =>
      value && { sets: [], deletes: keysWithExpiry(pendingPaymentRows, { key, value }) },
  });
  return [
    pending,
    unbookedOf("unbookedPayments", (projectId) => projectId),
    unbookedOf("unbookedWalletPayments", () => "instance"),
    eraserOf("payments", (projectId) => projectId),
    eraserOf("walletPayments", () => "instance"),
  ];
}
