import { absoluteAmount, type Entry } from "../../src/ledger/entry.ts";
import type { BooksAudit } from "./books_audit.ts";
import type { Violations } from "./violations.ts";

/** The response that a caller got to one attempt. */
export type Outcome =
  /**
   * 200, and what it states about the entry; `amount` is null where the response does not state it.
   */
  | { kind: "booked"; activityId: string; amount: string | null }
  /** 200, and nothing was taken. */
  | { kind: "refused" }
  | { kind: "failed"; status: number }
  /** 503, a broken connection, or a caller who disconnected: the outcome is unknown. */
  | { kind: "unknown" };

/** One operation that a caller wants, in as many attempts as it takes. */
export interface Claim {
  n: number;
  kind: "deposit" | "charge" | "refund" | "chat";
  projectId: string;
  user: string;
  idempotencyKey: string | null;
  /** Whether it is a new operation on a project that was archived before. */
  afterEnd: boolean;
  /** For a chat: the ids of its attempts. */
  requestIds: string[];
  outcomes: Outcome[];
  /** Whether its caller has given up, or knows the outcome. */
  ended: boolean;
}

/** Compares the responses that callers got with the ledger. */
export class ClaimsAudit {
  readonly claims: Claim[] = [];
  readonly #books: BooksAudit;
  readonly #violations: Violations;

  constructor(books: BooksAudit, violations: Violations) {
    this.#books = books;
    this.#violations = violations;
  }

  open(claim: Omit<Claim, "n" | "requestIds" | "outcomes" | "ended">): Claim {
    const n = this.claims.length + 1;
    const opened = { ...claim, n, requestIds: [], outcomes: [], ended: false };
    this.claims.push(opened);
    return opened;
  }

  /** Whether an operation for this user is still under way. */
  isBusy(user: string): boolean {
    return this.claims.some((claim) => claim.user === user && !claim.ended);
  }

  /** Called with a caller's response: what is acknowledged must be durable by then. */
  told(claim: Claim, outcome: Outcome): void {
    const isKnown = claim.outcomes.some(({ kind }) => kind === "booked");
    claim.outcomes.push(outcome);
    const isSame = !isKnown || outcome.kind === "booked" || outcome.kind === "unknown";
    this.#must(isSame, "the same key gives the same response", () => JSON.stringify(claim));
    if (claim.afterEnd) this.#mustBeRefused(claim, outcome);
    if (outcome.kind !== "booked") return;
    const known = this.#books.entries.has(outcome.activityId);
    this.#must(known, "an acknowledged operation is durable", () => JSON.stringify(claim));
  }

  /** With this reason; or for lack of money, by settings that are a second old. */
  #mustBeRefused(claim: Claim, outcome: Outcome): void {
    const saysWhy = claim.kind === "chat" || outcome.kind !== "failed" || outcome.status === 403;
    const isRefused = outcome.kind !== "booked" && saysWhy;
    this.#must(isRefused, "an archived project takes nothing new", () => JSON.stringify(claim));
  }

  atTheEnd(): void {
    const byClaim = new Map<number | string, Entry[]>();
    for (const entry of this.#books.entries.values()) {
      const { metadata, usage } = entry;
      const name = usage ? usage.requestId : metadata?.claim;
      if (typeof name !== "string" && typeof name !== "number") continue;
      byClaim.set(name, [...byClaim.get(name) ?? [], entry]);
    }
    for (const claim of this.claims) {
      const names = claim.kind === "chat" ? claim.requestIds : [claim.n];
      this.#settle(claim, names.flatMap((name) => byClaim.get(name) ?? []));
    }
  }

  #settle(claim: Claim, entries: Entry[]): void {
    const { outcomes, idempotencyKey } = claim;
    const about = () => `${JSON.stringify(claim)} in the books: ${JSON.stringify(entries)}`;
    const must = (holds: boolean, invariant: string) => this.#must(holds, invariant, about);
    const booked = outcomes.filter((outcome) => outcome.kind === "booked");
    const [first] = booked;
    if (first) {
      const [entry] = entries;
      must(
        entries.length === 1 && entry?.id === first.activityId,
        "acknowledged is once in the books",
      );
      must(
        booked.every(({ activityId, amount }) =>
          activityId === first.activityId &&
          (amount === null || amount === absoluteAmount(entry ?? zero))
        ),
        "the same key gives the same response",
      );
      return;
    }
    const known = outcomes.length > 0 && outcomes.every(({ kind }) => kind !== "unknown");
    if (known) must(entries.length === 0, "a refused or failed operation leaves nothing");
    must(
      entries.length <= (idempotencyKey === null ? outcomes.length : 1),
      "nothing is booked twice",
    );
  }

  #must(holds: boolean, invariant: string, detail: () => string): void {
    this.#violations.must(holds, invariant, detail);
  }
}

const zero = { delta: "0" };
