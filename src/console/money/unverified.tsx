/** @jsxImportSource @hono/hono/jsx */
import { unverifiedReasons } from "../../base/unverified_reasons.ts";
import { isSecretWrong, type UnverifiedEvents } from "../../payments/unverified.ts";
import { TimeCell } from "../../pages/parts.tsx";

/**
 * Events in Stripe's name that nobody could verify since the last one that was; nothing where
 * there are none. Anyone can send them, so the note is mild until the secret is proven wrong.
 */
export function UnverifiedNote({ events, now }: { events: UnverifiedEvents | null; now: number }) {
  if (events === null) return null;
  const { count, booked, reason, lastAt } = events;
  if (isSecretWrong(events, now)) {
    return (
      <section class="notice attention" id="unverified">
        <strong>The signing secret of Stripe’s webhook is wrong.</strong>{" "}
        Payments are booked only because this server asks Stripe, up to ten minutes late: {booked}
        {" "}
        so far. Replace the Stripe key, or set the right <code>webhookSecret</code>.
      </section>
    );
  }
  return (
    <p class="muted" id="unverified">
      {count === 1 ? "1 event" : `${count} events`} in Stripe’s name could not be verified, the last
      {" "}
      <TimeCell at={lastAt} />. {unverifiedReasons[reason]}{" "}
      Anyone can send such events, and they move no money. If Stripe’s dashboard shows failed
      deliveries of this webhook, they are Stripe’s: then connect Stripe again.
    </p>
  );
}
