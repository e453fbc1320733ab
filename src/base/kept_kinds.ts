/**
 * The kinds of rows that are kept for a time, by the first parts of their keys. The guide to
 * operation has a table of them, and metrics name them.
 */
export const keptKinds = [
  "cached_response",
  "chat_replay",
  "console_session",
  "delivery",
  "device",
  "event",
  "kept_by_user",
  "kept_id",
  "kept_turn",
  "link",
  "paywalled",
  "pending_payment",
  "person_device",
  "redelivery_job",
  "requests",
  "sent_confirmations",
  "stripe_reversal",
  "target_health",
  "top_users",
  "unbooked_payment",
  "unverified_events",
  "user_link",
  "wallet_link",
  "wallet_mail",
] as const;
/** One of these kinds. */
export type KeptKind = typeof keptKinds[number];

/** Returns the kind of that name. Throws where the list above lacks it. */
export function keptKindOf(name: unknown): KeptKind {
  const kind = keptKinds.find((known) => known === name);
  if (kind === undefined) throw new Error(`keptKinds lacks '${name}'`);
  return kind;
}
