import { fromDecimal } from "../../src/base/money.ts";
import { absoluteAmount, type Entry } from "../../src/ledger/entry.ts";
import { allStripeReversalsPrefix } from "../../src/store/keys.ts";
import type { BooksAudit } from "./books_audit.ts";
import type { MemoryStore } from "./memory_store.ts";
import type { StripePayment } from "./stripe_payment.ts";
import type { Violations } from "./violations.ts";

const unitsPerCent = 10_000_000n;

/** Compares payments and refunds at Stripe with the ledger. */
export class StripeAudit {
  readonly payments: StripePayment[] = [];
  readonly #books: BooksAudit;
  readonly #violations: Violations;

  constructor(books: BooksAudit, violations: Violations) {
    this.#books = books;
    this.#violations = violations;
  }

  /** Whether a user has a payment that is not recorded yet. */
  isOwed(user: string): boolean {
    return this.payments.some((payment) => payment.user === user && !payment.booked);
  }

  /**
   * An event is accepted, or must be sent again when the service can process it; including its
   * user.
   */
  answered(event: unknown, answer: { status: number; body: unknown } | null): void {
    const fine = answer === null || answer.status === 200 || answer.status === 503 ||
      (answer.status === 403 && JSON.stringify(answer.body).includes("user_being_forgotten"));
    const about = () => `${JSON.stringify(event)}: ${JSON.stringify(answer)}`;
    this.#violations.must(fine, "Stripe's events are accepted", about);
  }

  atTheEnd(store: MemoryStore): void {
    const [left] = store.list({ prefix: allStripeReversalsPrefix, limit: 1 });
    const invariant = "nothing is kept of a payment that is booked";
    this.#violations.must(!left, invariant, () => JSON.stringify(left?.key));
    const entries = [...this.#books.entries.values()];
    for (const payment of this.payments) {
      const deposits = entries.filter(({ kind, metadata }) =>
        kind === "deposit" && metadata?.checkoutSessionId === payment.sessionId
      );
      this.#settle(payment, deposits, entries);
    }
  }

  #settle(payment: StripePayment, deposits: Entry[], entries: Entry[]): void {
    const about = () => `${JSON.stringify(payment)} ${JSON.stringify(deposits)}`;
    const must = (holds: boolean, what: string) => this.#violations.must(holds, what, about);
    const [deposit] = deposits;
    must(deposits.length === 1, "a paid session is booked once");
    if (!deposit) return;
    const whole = BigInt(payment.cents) * unitsPerCent;
    must(fromDecimal(absoluteAmount(deposit)) === whole, "a paid session is booked once");
    const back = entries.filter(({ refundedActivityId }) => refundedActivityId === deposit.id);
    const taken = back.reduce((sum, { delta }) => sum - fromDecimal(delta), 0n);
    const short = back.reduce((sum, { shortfall }) => sum + fromDecimal(shortfall), 0n);
    const told = BigInt(payment.centsBack - payment.centsWon) * unitsPerCent;
    const due = told < whole ? told : whole;
    must(taken + short >= due, "a Stripe refund is taken back, or recorded as a shortfall");
    must(taken <= due, "what was taken is reinstated");
    must(taken + short <= due, "a shortfall is no longer due after a reinstatement");
  }
}
