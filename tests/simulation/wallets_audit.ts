import { fromBytes } from "../../src/base/json.ts";
import { fromDecimal } from "../../src/base/money.ts";
import type { Hold } from "../../src/ledger/account.ts";
import type { Authorization, FormerPayer } from "../../src/ledger/authorization.ts";
import { absoluteAmount, type Entry } from "../../src/ledger/entry.ts";
import type { Write } from "../../src/store/kv.ts";
import type { Violations } from "./violations.ts";

/** Entries that count as spent; refunded deposits do not. */
const spendingKinds: readonly Entry["kind"][] = ["usage", "charge", "expired"];

/** Who pays, and who paid before. */
function payersOf(decided: Authorization | undefined): FormerPayer[] {
  return decided ? [decided, ...(decided.former ?? [])] : [];
}

/** Tracks what people authorize, and what their wallets are charged for it. */
export class WalletsAudit {
  /** By project and user: the last decision. */
  readonly #decided = new Map<string, Authorization>();
  /** Connections that were active until the current write, or are from it on. */
  readonly #active = new Set<string>();
  #ending: string[] = [];
  /** By link: when its decision was made. */
  readonly #links = new Map<string, number>();
  /** By hold: its amount and its connection. */
  readonly #holds = new Map<string, Hold>();
  /** By connection: the last day in which anything was charged. */
  readonly #days = new Map<string, string>();
  /** By connection and day: what was charged. */
  readonly #spent = new Map<string, bigint>();
  readonly #violations: Violations;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Called with each write that has landed, before its entries and holds. */
  landed({ sets, deletes }: Write): void {
    for (const ended of this.#ending) this.#active.delete(ended);
    this.#ending = [];
    for (const { key, value } of sets) {
      if (key[0] === "authorization") this.#decide(`${key[1]} ${key[2]}`, fromBytes(value));
    }
    for (const key of deletes) {
      if (key[0] === "authorization") this.#decide(`${key[1]} ${key[2]}`, null);
    }
  }

  /** Called with each new hold. */
  held(hold: Hold): void {
    const { id, connectionId } = hold;
    if (connectionId === null) return;
    this.#holds.set(id, hold);
    this.#must(
      this.#active.has(connectionId),
      "no wallet is charged without an authorization",
      () => id,
    );
  }

  /** Called with the entries of the write, once all are known. */
  booked(entries: readonly { owner: string; entry: Entry }[], { sets }: Write): void {
    const written = new Set<string>();
    for (const { key } of sets) {
      if (key[0] === "authorization") written.add(`${key[1]} ${key[2]}`);
    }
    for (const { owner, entry } of entries) {
      const { projectId, user, kind, delta } = entry;
      if (projectId === undefined || !spendingKinds.includes(kind)) continue;
      const name = `${projectId} ${user}`;
      const decided = this.#decided.get(name);
      const hold = kind === "charge" ? null : this.#holds.get(entry.id.replace(/^act_/, "req_"));
      const connection = kind === "charge" ? decided?.connectionId : hold?.connectionId;
      const about = () => `${JSON.stringify(entry)} ${JSON.stringify(decided)}`;
      if (kind === "charge") {
        const allowed = decided?.personId === owner && this.#active.has(decided.connectionId);
        this.#must(allowed, "no wallet is charged without an authorization", about);
      }
      // What started before a payer was replaced is still theirs.
      const payer = payersOf(decided).find(({ connectionId }) => connectionId === connection);
      if (!decided || !payer || !connection || !delta.startsWith("-")) continue;
      this.#must(written.has(name), "a wallet counts what a day takes", about);
      // A day that has started does not end again, whichever clock is behind.
      const date = new Date(entry.createdAt).toISOString().slice(0, 10);
      const begun = this.#days.get(connection) ?? date;
      const day = begun > date ? begun : date;
      this.#days.set(connection, day);
      const counted = `${connection} ${day}`;
      const amount = fromDecimal(absoluteAmount(entry));
      const sum = (this.#spent.get(counted) ?? 0n) + amount;
      this.#spent.set(counted, sum);
      // A cap may be lowered during a call: what was held for it is paid. So is what started under
      // a former payer, whose cap is no longer kept.
      const within = payer !== decided || sum <= fromDecimal(decided.dailyCap) ||
        amount <= (hold?.amount ?? 0n);
      this.#must(within, "a day takes no more than its cap", () => `${about()} of ${sum}`);
    }
    for (const name of written) this.#compare(name);
  }

  /** What is charged against a day's cap equals what is counted. */
  #compare(name: string): void {
    const decided = this.#decided.get(name);
    for (const { connectionId, day, spent = "0" } of payersOf(decided)) {
      const sum = this.#spent.get(`${connectionId} ${day}`) ?? 0n;
      const about = () => `${name} ${JSON.stringify(decided)} of ${sum} by ${connectionId}`;
      this.#must(fromDecimal(spent) === sum, "a wallet counts what a day takes", about);
    }
  }

  #decide(name: string, next: Authorization | null): void {
    const last = this.#decided.get(name);
    if (last?.status === "active") this.#ending.push(last.connectionId);
    if (next) this.#decided.set(name, next);
    else this.#decided.delete(name);
    if (next?.requestId) {
      const { requestId, decidedAt } = next;
      const isFirst = (this.#links.get(requestId) ?? decidedAt) === decidedAt;
      this.#must(isFirst, "a link is for one decision", () => JSON.stringify(next));
      this.#links.set(requestId, decidedAt);
    }
    if (next?.status !== "active") return;
    this.#active.add(next.connectionId);
    this.#ending = this.#ending.filter((ended) => ended !== next.connectionId);
  }

  #must(holds: boolean, invariant: string, detail: () => string): void {
    this.#violations.must(holds, invariant, detail);
  }
}
