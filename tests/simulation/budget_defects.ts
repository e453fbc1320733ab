import { TxBudgets } from "../../src/ledger/tx_budgets.ts";
import type { BudgetUse } from "../../src/store/budgets.ts";
import { keyText } from "../../src/store/batch.ts";
import type { Write } from "../../src/store/kv.ts";
import { type Defect, is, isConcerned, withoutChecks } from "./defect_seams.ts";

/** Replaces a method of every transaction's budgets by what `make` returns. */
function txBudgets<Name extends "hold" | "release" | "spend">(
  name: Name,
  make: (inner: TxBudgets[Name]) => TxBudgets[Name],
): () => () => void {
  return () => {
    const inner = TxBudgets.prototype[name];
    Object.defineProperty(TxBudgets.prototype, name, { value: make(inner), configurable: true });
    return () =>
      Object.defineProperty(TxBudgets.prototype, name, { value: inner, configurable: true });
  };
}

/** Defects of the budgets that several users share. */
export const budgetDefects: readonly Defect[] = [
  {
    name: "a budget is checked first, and counted later without its cap",
    seams: {
      deps(deps) {
        const { committer } = deps;
        const seen = new Map<string, BudgetUse>();
        const uncapped = (write: Write): Write => {
          const { budgets } = write;
          if (!budgets) return write;
          return { ...write, budgets: budgets.map((change) => ({ ...change, cap: null })) };
        };
        const budgets: typeof committer.budgets = {
          load: (...given) => committer.budgets.load(...given),
          use(key) {
            const now = committer.budgets.use(key);
            const before = seen.get(keyText(key)) ?? now;
            seen.set(keyText(key), now);
            return before;
          },
        };
        const commit = (write: Write) => committer.commit(uncapped(write));
        return { ...deps, committer: { ...committer, budgets, commit } };
      },
    },
    seedsMax: 10,
  },
  {
    name: "a budget is written on a row that may be stale",
    seams: withoutChecks(is("budget")),
    seedsMax: 20,
  },
  {
    name: "a hold does not count toward its budget",
    install: txBudgets("hold", () =>
      function (budgets, amount) {
        return budgets.map(({ name }) => [name, amount] as const);
      }),
    seedsMax: 5,
  },
  {
    name: "some budgets are not released",
    install: txBudgets("release", (inner) =>
      function (this: TxBudgets, held) {
        if (!held.some(([, amount]) => isConcerned(String(amount)))) inner.call(this, held);
      }),
    seedsMax: 5,
  },
  {
    name: "what is charged does not count toward a budget",
    install: txBudgets("spend", () => () => {}),
    seedsMax: 5,
  },
];
