// What a page shows after a form was processed, by a word in its URL: a forged link cannot make a
// page show other text.
const texts = {
  "signed-out": "You are signed out.",
  "session-ended": "Your session had ended, so nothing was changed. Sign in and try again.",
  "key-revoked": "The key is revoked. It no longer works.",
  "already-sent":
    "This form was already submitted, and is processed only once. If the result is missing " +
    "here, open the page again and submit it again.",
  "saved": "Saved.",
  "upstream-unused":
    "Saved. Nothing changes yet: no route leads to this upstream. Add a route, or change the usual " +
    "upstream instead.",
  "upstream-key-removed":
    "Saved, without a key: the stored one was for another host. Enter the new one.",
  "upstream-changed": "Saved. Requests without a route go there from now on. Test it.",
  "upstream-removed": "Removed. Requests without a route go to the server’s upstream from now on.",
  "unchanged": "Nothing was changed.",
  "deposited": "The deposit is recorded.",
  "refunded": "The refund is recorded.",
  "user-erased": "The user is erased. The entries are kept under this random name.",
  "booked-before": "This form was already submitted; it is recorded once.",
  "webhook-deactivated": "The webhook is deactivated.",
  "webhook-reenabled": "The webhook is active again.",
  "webhook-inactive": "The webhook is inactive, so nothing was sent. Activate it first.",
  "redelivering": "The delivery is being retried.",
  "redelivering-all": "The failed deliveries are being retried, a few at a time.",
  "stripe-connected": "Stripe is connected: users can pay now.",
  "stripe-unready": "Stripe is connected. Users cannot pay real money yet: see below.",
  "prices-refreshed": "The list prices are refreshed. They apply from the next request on.",
  "join-asked": "The owners are asked to confirm, at their wallets’ page.",
  "join-withdrawn": "The wallets stay as they are.",
  "wallets-joined": "The wallets are one now.",
  "mail-sent": "The test e-mail was sent.",
  "link-sent": "The link was sent again.",
  "test-sent": "The test event was sent. It is the newest one in the list of deliveries.",
} as const;

/** A message that a page shows after a form was processed. */
export type Flash = keyof typeof texts;

/** Returns the text of a message; null for an unknown one. */
export function flashText(flash: string | undefined): string | null {
  return Object.entries(texts).find(([name]) => name === flash)?.[1] ?? null;
}

/** Adds a message to the URL of a page. */
export function withFlash(address: string, flash: Flash): string {
  return `${address}${address.includes("?") ? "&" : "?"}flash=${flash}`;
}
