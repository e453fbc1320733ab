import { type ApiError, badRequest } from "../../base/errors.ts";
import { type Amount, formatAmount } from "../../base/money.ts";

/**
 * 400: a wallet's money belongs to its owner, so no project deposits into a wallet or refunds from
 * it.
 */
export function refundOnlyAtStripe(): ApiError {
  return badRequest(
    null,
    "In the shared mode, a payment into a wallet is refunded at Stripe, by whoever runs this " +
      "server.",
    "mode_conflict",
  );
}

/** 400: the refund is more than what is left to refund of an entry. */
export function refundExceedsOriginal(left: Amount): ApiError {
  return badRequest(
    "amount",
    `Only ${formatAmount(left)} of this activity is left to refund.`,
    "refund_exceeds_original",
  );
}
