import { type Amount, toAmount, zero } from "../base/money.ts";
import type { Budget, Budgets, BudgetUse } from "../store/budgets.ts";
import { keyText } from "../store/batch.ts";
import { budgetKey } from "../store/keys.ts";
import type { BudgetChange } from "../store/kv.ts";
import type { SpendingBound } from "./bounds.ts";

/** A budget that a hold counts toward, and the amount that it holds there. */
export type BudgetHold = readonly [name: string, amount: Amount];

/** The budgets of a hold that counts toward none. */
export const holdsNothing: readonly BudgetHold[] = [];
const noNames: readonly string[] = [];

/** The names of the budgets that a hold counts toward. */
export function budgetNames(held: readonly BudgetHold[]): readonly string[] {
  return held.length === 0 ? noNames : held.map(([name]) => name);
}

/** The budgets of a project, while operations on one account are applied to them. */
export class TxBudgets {
  readonly #budgets: Pick<Budgets, "use">;
  readonly #projectId: string;
  /** Changes by the text of the budget's key; null while nothing is changed. */
  #changes: Map<string, BudgetChange> | null = null;

  constructor(budgets: Pick<Budgets, "use">, projectId: string) {
    this.#budgets = budgets;
    this.#projectId = projectId;
  }

  /**
   * The spent and held amounts of a budget that the operation has listed, after this transaction.
   */
  use({ name }: Pick<Budget, "name">): BudgetUse {
    const key = budgetKey(this.#projectId, name);
    const { spent, held } = this.#budgets.use(key);
    const change = this.#changes?.get(keyText(key));
    if (!change) return { spent, held };
    return { spent: toAmount(spent + change.spent), held: toAmount(held + change.held) };
  }

  /** How much these budgets leave for one more amount. */
  bounds(budgets: readonly Budget[]): SpendingBound[] {
    return budgets.map((budget) => {
      const use = this.use(budget);
      const rest = toAmount(budget.cap - use.spent - use.held);
      const left = rest < 0n ? zero : rest;
      return { left, withoutOwnHolds: left, refusal: () => budget.refusal(use) };
    });
  }

  /** Sets money aside. The write is refused where a budget no longer leaves that much. */
  hold(budgets: readonly Budget[], amount: Amount): readonly BudgetHold[] {
    if (budgets.length === 0) return holdsNothing;
    return budgets.map(({ name, cap }) => {
      this.#change(name, { spent: zero, held: amount, cap });
      return [name, amount];
    });
  }

  /** Gives back the amounts that a hold has set aside. */
  release(held: readonly BudgetHold[]): void {
    for (const [name, amount] of held) {
      this.#change(name, { spent: zero, held: toAmount(-amount), cap: null });
    }
  }

  /**
   * Counts a charged amount; `capped` budgets refuse the write where it exceeds what they leave.
   */
  spend(names: readonly string[], amount: Amount, capped: readonly Budget[]): void {
    if (amount === zero) return;
    for (const name of names) {
      const cap = capped.find((budget) => budget.name === name)?.cap ?? null;
      this.#change(name, { spent: amount, held: zero, cap });
    }
  }

  /** The changes to write with the transaction; undefined where there are none. */
  get changes(): readonly BudgetChange[] | undefined {
    if (!this.#changes) return undefined;
    const changes = [...this.#changes.values()].filter(({ spent, held }) =>
      spent !== zero || held !== zero
    );
    return changes.length > 0 ? changes : undefined;
  }

  #change(name: string, { spent, held, cap }: Omit<BudgetChange, "key">): void {
    const key = budgetKey(this.#projectId, name);
    const text = keyText(key);
    const changes = this.#changes ??= new Map();
    const before = changes.get(text);
    changes.set(text, {
      key,
      spent: toAmount((before?.spent ?? zero) + spent),
      held: toAmount((before?.held ?? zero) + held),
      cap: cap ?? before?.cap ?? null,
    });
  }
}
