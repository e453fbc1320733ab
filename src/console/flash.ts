// What a page says after a form has done its work, by a word in its address: so a forged link can
// make a page say nothing of its own.
const texts = {
  "signed-out": "You are signed out.",
  "session-ended": "You were no longer signed in, so nothing was done. Sign in, and do it again.",
  "key-revoked": "The key is revoked. It opens nothing any more.",
  "already-sent":
    "This form was sent before, and is done once at most. If what it asks for is not to be seen " +
    "here, open its page again and send it anew.",
  "saved": "Saved.",
  "unchanged": "Nothing was changed.",
  "deposited": "The deposit is booked.",
  "refunded": "The refund is booked.",
  "booked-before": "This form was sent before; it is booked once.",
  "webhook-deactivated": "The webhook is deactivated.",
  "webhook-reenabled": "The webhook is active again.",
  "webhook-inactive":
    "The webhook is inactive, so nothing was sent on its way. Activate it again first.",
  "redelivering": "The delivery is on its way again.",
  "redelivering-all": "What failed is on its way again, a few at a time.",
  "test-sent": "A test event is on its way. It is the newest one in the list of deliveries.",
} as const;

/** Something that a page says once a form has done its work. */
export type Flash = keyof typeof texts;

/** The text of a flash; null for what is none. */
export function flashText(flash: string | undefined): string | null {
  return Object.entries(texts).find(([name]) => name === flash)?.[1] ?? null;
}

/** An address whose page says so. */
export function withFlash(address: string, flash: Flash): string {
  return `${address}${address.includes("?") ? "&" : "?"}flash=${flash}`;
}
