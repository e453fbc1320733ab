import { absoluteAmount, type Entry } from "../../src/ledger/entry.ts";
import type { BooksAudit } from "./books_audit.ts";
import type { Violations } from "./violations.ts";

/** What a caller was told of one try. */
export type Outcome =
  /** 200, and what it says of the entry; `amount` is null where the answer does not say. */
  | { kind: "booked"; activityId: string; amount: string | null }
  /** 200, and that nothing was taken. */
  | { kind: "refused" }
  | { kind: "failed"; status: number }
  /** 503, a broken connection, or a caller who left: it may have happened or not. */
  | { kind: "unknown" };

/** One thing that a caller wants, in as many tries as it takes. */
export interface Claim {
  n: number;
  kind: "deposit" | "charge" | "refund" | "chat";
  projectId: string;
  user: string;
  idempotencyKey: string | null;
  /** Whether it is something new, wanted of a project that was archived before. */
  afterEnd: boolean;
  /** Of a chat: the ids of its tries. */
  requestIds: string[];
  outcomes: Outcome[];
  /** Whether its caller has given up, or knows. */
  ended: boolean;
}

/** Compares what callers were told with what is in the books. */
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

  /** Whether something is still wanted for this user. */
  isBusy(user: string): boolean {
    return this.claims.some((claim) => claim.user === user && !claim.ended);
  }

  /** What a caller has just been told: what is acknowledged is durable by then. */
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

  /** With the reason; or for want of money, by settings of a second ago. */
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
