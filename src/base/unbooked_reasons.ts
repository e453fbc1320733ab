/**
 * Every reason for which a payment at Stripe is not booked, and what the console says about it. The
 * names are stored, and label a metric: append rows, never rename one.
 */
export const unbookedReasons = {
  invalid_signature: "The signature is not valid: check the webhook’s signing secret.",
  no_stripe_account: "The project has no Stripe keys, so the event cannot be verified.",
  unknown_project: "This server has no such project. Another server may use this Stripe account.",
  missing_user: "The session names no user.",
  invalid_user: "The session names a user that cannot exist.",
  other_wallet: "The session pays into a wallet and the project has none, or the reverse.",
  other_amount: "The amount is not the one that was requested.",
  other_currency: "The currency is not the one that was requested.",
  other_refund_currency: "A refund or dispute has another currency than its payment.",
  unexpected_event: "The event does not have the shape that Stripe documents.",
  other_mode: "The event is of Stripe’s test mode and the key here is live, or the reverse.",
  failed: "Recording the payment failed. Stripe sends the event again.",
} as const;

/** Why a payment is not booked: a row of `unbookedReasons`. */
export type UnbookedReason = keyof typeof unbookedReasons;

/** The names of all reasons, in the table's order. */
export const unbookedReasonNames = Object.keys(unbookedReasons) as [
  UnbookedReason,
  ...UnbookedReason[],
];
