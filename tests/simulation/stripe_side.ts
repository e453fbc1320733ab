import { createHmac } from "node:crypto";
import type { Callers, Project } from "./callers.ts";
import type { StripeAudit } from "./stripe_audit.ts";
import type { StripePayment } from "./stripe_payment.ts";
import type { Timeline } from "./timeline.ts";

/** A Stripe account: a project's, or this server's. */
export const stripeKeys = { secretKey: "sk_test_simulated", webhookSecret: "whsec_simulated" };

interface StripeEvent {
  id: string;
  type: string;
  data: { object: Record<string, unknown>; previous_attributes?: Record<string, unknown> };
}

interface Parts {
  timeline: Timeline;
  callers: Callers;
  stripe: StripeAudit;
}

const lateMaxMs = 15_000;
const veryLateMaxMs = 60_000;
const againMaxMs = 20_000;

/** Stripe: takes payments, refunds some of them, and reports each event until it is accepted. */
export class StripeSide {
  readonly #parts: Parts;
  #events = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** A user pays. Later events are reported late, in any order, and some of them twice. */
  async pay(
    { id: projectId }: Project,
    user: string,
    wallet: StripePayment["wallet"] = null,
  ): Promise<void> {
    const { timeline, stripe } = this.#parts;
    const n = stripe.payments.length + 1;
    const payment: StripePayment = {
      sessionId: `cs_${n}`,
      intent: `pi_${n}`,
      projectId,
      user,
      wallet,
      cents: timeline.whole(1, 3),
      centsBack: 0,
      centsWon: 0,
      booked: false,
    };
    stripe.payments.push(payment);
    const told = [...this.#paid(payment), ...this.#paidBack(payment)];
    await Promise.all(told.map((event) => this.#tell(payment, event)));
  }

  /** One event, or first one that reports it as unpaid; or two that both report it. */
  #paid(payment: StripePayment): StripeEvent[] {
    const completed = (status: string) =>
      this.#event("checkout.session.completed", sessionOf(payment, status));
    const later = () =>
      this.#event("checkout.session.async_payment_succeeded", sessionOf(payment, "paid"));
    return this.#parts.timeline.pick([
      () => [completed("paid")],
      () => [completed("paid"), later()],
      () => [completed("unpaid"), later()],
    ])();
  }

  /** Nothing, a part, all of it in parts, a failed refund, or a dispute, also after one or won. */
  #paidBack(payment: StripePayment): StripeEvent[] {
    const { timeline } = this.#parts;
    const { cents } = payment;
    const refund = (before: number, after: number) => {
      payment.centsBack += after - before;
      const object = { payment_intent: payment.intent, amount_refunded: after };
      return this.#event("charge.refunded", object, { amount_refunded: before });
    };
    const told = (type: string, status: string) => {
      const object = { id: `dp_${payment.intent}`, payment_intent: payment.intent };
      return this.#event(`charge.dispute.${type}`, { ...object, status, amount: cents });
    };
    const dispute = () => {
      payment.centsBack += cents;
      return told("created", "needs_response");
    };
    const withdrawn = () => told("funds_withdrawn", "needs_response");
    const won = () => {
      payment.centsWon += cents;
      return [told("closed", "won"), told("funds_reinstated", "won")];
    };
    const failed = (cents: number) => {
      payment.centsWon += cents;
      const id = `re_${payment.intent}`;
      const object = { id, status: "failed", payment_intent: payment.intent, amount: cents };
      return [this.#event("refund.failed", object), this.#event("refund.updated", object)];
    };
    return timeline.pick([
      () => [],
      () => [refund(0, cents), ...failed(cents)],
      () => [refund(0, 1), ...failed(1), dispute()],
      () => [refund(0, 1)],
      () => {
        const told = refund(0, 1);
        return [told, this.#event(told.type, told.data.object)];
      },
      () => Array.from({ length: cents }, (_, back) => refund(back, back + 1)),
      () => [dispute()],
      () => [refund(0, cents), dispute()],
      () => [refund(0, 1), dispute()],
      () => [told("created", "warning_needs_response"), told("closed", "warning_closed")],
      () => [dispute(), withdrawn(), told("closed", "lost")],
      () => [dispute(), withdrawn(), ...won()],
      () => [refund(0, 1), dispute(), ...won()],
    ])();
  }

  #event(
    type: string,
    object: Record<string, unknown>,
    before?: Record<string, unknown>,
  ): StripeEvent {
    const data = { object, ...(before ? { previous_attributes: before } : {}) };
    return { id: `evt_stripe_${++this.#events}`, type, data };
  }

  /** Until it is accepted; now and then once more. */
  async #tell(payment: StripePayment, event: StripeEvent): Promise<void> {
    const { timeline } = this.#parts;
    for (let times = timeline.pick([1, 1, 2]); times > 0; times--) {
      await timeline.pause(timeline.between(0, timeline.pick([lateMaxMs, veryLateMaxMs])));
      for (;;) {
        const outcome = await this.#post(payment, event);
        if (outcome === "booked") payment.booked = true;
        if (outcome !== null) break;
        await timeline.pause(timeline.between(1_000, againMaxMs));
      }
    }
  }

  /** Returns what the service states that it did; null when it has not accepted it. */
  async #post({ projectId, wallet }: StripePayment, event: StripeEvent): Promise<unknown> {
    const { timeline, callers, stripe } = this.#parts;
    const seconds = Math.floor(timeline.now / 1_000);
    const signature = createHmac("sha256", stripeKeys.webhookSecret)
      .update(`${seconds}.${JSON.stringify(event)}`).digest("hex");
    const answer = await callers.call(wallet ? "/v1/stripe" : `/v1/stripe/${projectId}`, {
      key: "none",
      body: event,
      headers: { "stripe-signature": `t=${seconds},v1=${signature}` },
    });
    stripe.answered(event, answer);
    return answer?.status === 200 ? answer.body.outcome : null;
  }
}

function sessionOf(payment: StripePayment, status: string) {
  const { sessionId, intent, projectId, user, wallet, cents } = payment;
  const whose = wallet && {
    farebox_person: wallet.personId,
    farebox_connection: wallet.connectionId,
  };
  return {
    id: sessionId,
    payment_status: status,
    payment_intent: intent,
    amount_total: cents,
    currency: "usd",
    metadata: {
      farebox_project: projectId,
      farebox_user: user,
      farebox_units: String(cents),
      ...whose,
    },
  };
}
