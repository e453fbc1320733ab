/**
 * Every reason for which nobody can tell whether an event in Stripe's name is Stripe's. Anyone can
 * cause them, except `outdated_signature`. The names are stored, and label a metric: append names,
 * never rename one.
 */
export const unverifiedReasonNames = [
  "no_signature",
  "invalid_signature",
  "outdated_signature",
  "no_stripe_account",
  "unknown_project",
] as const;

/** Why an event is not verified. */
export type UnverifiedReason = typeof unverifiedReasonNames[number];

/** What the console says about each reason. */
export const unverifiedReasons: Readonly<Record<UnverifiedReason, string>> = {
  no_signature: "They have no signature of Stripe’s form. Stripe always sends one.",
  invalid_signature: "The signature does not fit the webhook’s signing secret.",
  outdated_signature:
    "The signature fits, but is older or newer than five minutes: is this server’s clock right?",
  no_stripe_account: "Stripe is not connected here, so no signature can be verified.",
  unknown_project: "The URL names a project that does not exist.",
};
