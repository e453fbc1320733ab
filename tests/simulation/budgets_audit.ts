import { fromBytes } from "../../src/base/json.ts";
import { fromDecimal } from "../../src/base/money.ts";
import { decodeAccount } from "../../src/ledger/account.ts";
import { absoluteAmount, type Entry } from "../../src/ledger/entry.ts";
import type { ApiKey } from "../../src/projects/schema.ts";
import { decodeBudget } from "../../src/store/budgets.ts";
import type { Write } from "../../src/store/kv.ts";
import type { Violations } from "./violations.ts";

/** Tracks what counts toward each key's budget, by the holds and entries that name it. */
export class BudgetsAudit {
  readonly #caps = new Map<string, bigint>();
  readonly #spent = new Map<string, bigint>();
  /** By account, and by budget: what holds there. */
  readonly #held = new Map<string, Map<string, bigint>>();
  readonly #counted = new Set<string>();
  readonly #violations: Violations;

  constructor(violations: Violations) {
    this.#violations = violations;
  }

  /** Called with each write that has landed. */
  landed({ sets, deletes }: Write): void {
    for (const { key, value } of sets) {
      if (key[0] === "key") this.#takeCap(fromBytes<ApiKey>(value));
      if (key[0] === "entry") this.#countEntry(String(key[1]), fromBytes<Entry>(value));
      if (key[0] === "account") this.#takeHolds(`${key[1]} ${key[2]}`, value);
    }
    for (const key of deletes) {
      if (key[0] === "account") this.#held.delete(`${key[1]} ${key[2]}`);
    }
    for (const { key, value } of sets) {
      if (key[0] !== "budget") continue;
      this.#compare(String(key[2]), decodeBudget(value));
    }
  }

  #takeCap({ id, budget }: ApiKey): void {
    if (budget !== null) this.#caps.set(id, fromDecimal(budget));
  }

  #countEntry(owner: string, entry: Entry): void {
    const id = `${owner} ${entry.id}`;
    if (this.#counted.has(id)) return;
    this.#counted.add(id);
    const amount = fromDecimal(absoluteAmount(entry));
    for (const name of entry.budgets ?? []) {
      this.#spent.set(name, (this.#spent.get(name) ?? 0n) + amount);
    }
  }

  #takeHolds(account: string, value: Uint8Array): void {
    const held = new Map<string, bigint>();
    for (const { budgets } of decodeAccount(value).holds) {
      for (const [name, amount] of budgets) held.set(name, (held.get(name) ?? 0n) + amount);
    }
    if (held.size > 0) this.#held.set(account, held);
    else this.#held.delete(account);
  }

  #compare(name: string, { spent, held }: { spent: bigint; held: bigint }): void {
    const must = (holds: boolean, invariant: string) =>
      this.#violations.must(holds, invariant, () => `${name}: ${spent} spent, ${held} held`);
    let holds = 0n;
    for (const ofAccount of this.#held.values()) holds += ofAccount.get(name) ?? 0n;
    must(held === holds, "a budget holds what its calls hold");
    must(spent === (this.#spent.get(name) ?? 0n), "a budget has spent what its entries say");
    must(spent + held <= (this.#caps.get(name) ?? -1n), "no key exceeds its budget");
  }
}
