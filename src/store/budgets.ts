import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, toAmount, zero } from "../base/money.ts";
import { keyText } from "./batch.ts";
import { budgetKey } from "./keys.ts";
import type { BudgetChange, Key, Kv, Write } from "./kv.ts";

/** A limit on the total spend, which the accounts of several users share. */
export interface Budget {
  projectId: string;
  /** The budget's name within its project, for example the id of an API key. */
  name: string;
  /** The most that may be spent and held together, in 1e-9 units. */
  cap: Amount;
  /**
   * Returns the amount that was spent before the budget had a row. Read once, where it has none
   * yet.
   */
  spentBefore(): Promise<Amount>;
  /** Returns the error for a caller to whom the budget leaves too little. */
  refusal(use: BudgetUse): Error;
}

/** The amounts that count toward a budget. */
export interface BudgetUse {
  /** The sum of all charges. */
  spent: Amount;
  /** The sum that running calls hold. */
  held: Amount;
}

/** The budgets that this process has met, as the store has them. */
export interface Budgets {
  /**
   * Reads the budgets that are not known, or, with `again`, all of them. Null where there is
   * nothing to read.
   */
  load(budgets: readonly Budget[], again: boolean): Promise<void> | null;
  /** The amounts that count toward a loaded budget, including the changes of writes under way. */
  use(key: Key): BudgetUse;
  /** Counts changes that are going to be written, until they have landed, or `end` is called. */
  expect(changes: readonly BudgetChange[]): void;
  /**
   * Stops counting changes that are no longer going to be written. Harmless when they have landed.
   */
  end(changes: readonly BudgetChange[]): void;
  /**
   * Applies the changes of writes, in order, to the stored budgets. Throws when these cannot be
   * read.
   */
  fold<W extends Changing>(writes: readonly W[]): Promise<FoldedBudgets<W>>;
}

/** Something with a write that may change budgets. */
interface Changing {
  write: Pick<Write, "budgets">;
}

/** Writes as far as their budgets allow them, and the rows of these budgets after them. */
interface FoldedBudgets<W> {
  allowed: W[];
  /** The writes that would exceed a cap. */
  refused: W[];
  checks: Write["checks"];
  sets: Write["sets"];
  landed(version: string): void;
  /** Call this when the rows were not written, or nobody knows: the budgets are then read again. */
  abandon(): void;
}

/** A budget as it is stored. */
interface StoredBudget {
  /** In 1e-9 units. */
  spent: string;
  held: string;
  /** The part of `spent` that was counted before the budget had a row: no entry names it. */
  before?: string;
}

interface Known extends BudgetUse {
  key: Key;
  before: Amount;
  version: string | null;
  spentBefore: Budget["spentBefore"] | null;
  /** The sum of the changes of writes under way. */
  expected: BudgetUse;
  /** Whether the row must be read before it is written. */
  stale: boolean;
}

/**
 * How many budgets are remembered. With more, those without a write under way are forgotten, and
 * read again when needed.
 */
const budgetsMax = 10_000;

/**
 * Keeps budgets in memory. Rows are checked at each write, as accounts are: the memory only saves
 * the read, and lets the writes of many accounts go together.
 */
export function createBudgets(kv: Kv): Budgets {
  const known = new Map<string, Known>();
  const underWay = new Set<readonly BudgetChange[]>();

  async function read(key: Key, spentBefore: Budget["spentBefore"] | null): Promise<Known> {
    const { value, version } = await kv.get(key);
    const name = keyText(key);
    const before = spentBefore ?? known.get(name)?.spentBefore ?? null;
    const found = value ? decodeBudget(value) : unused(await before?.() ?? zero);
    const read = { ...found, version, spentBefore: before, stale: false };
    const met = known.get(name);
    if (met) return Object.assign(met, read);
    if (known.size >= budgetsMax) forgetIdle();
    const made: Known = { ...read, key, expected: { spent: zero, held: zero } };
    known.set(name, made);
    return made;
  }

  function forgetIdle(): void {
    for (const [name, { expected }] of known) {
      if (expected.spent === zero && expected.held === zero) known.delete(name);
    }
  }

  async function loadAll(budgets: readonly Budget[]): Promise<void> {
    const wanted = new Map(budgets.map((budget) => {
      const key = budgetKey(budget.projectId, budget.name);
      return [keyText(key), { ...budget, key }];
    }));
    for (const { key, spentBefore } of wanted.values()) await read(key, spentBefore);
  }

  function move(changes: readonly BudgetChange[], sign: 1n | -1n): void {
    for (const { key, spent, held } of changes) {
      const budget = known.get(keyText(key));
      if (!budget) continue;
      const { expected } = budget;
      budget.expected = {
        spent: toAmount(expected.spent + sign * spent),
        held: toAmount(expected.held + sign * held),
      };
    }
  }

  function end(changes: readonly BudgetChange[]): void {
    if (underWay.delete(changes)) move(changes, -1n);
  }

  /** The stored state of all budgets that the writes change; `again`: read anew. */
  async function currentOf(
    writes: readonly Changing[],
    again: boolean,
  ): Promise<Map<string, Known>> {
    const current = new Map<string, Known>();
    for (const { write: { budgets = [] } } of writes) {
      for (const { key } of budgets) {
        const name = keyText(key);
        if (current.has(name)) continue;
        const budget = again ? undefined : known.get(name);
        current.set(name, budget && !budget.stale ? budget : await read(key, null));
      }
    }
    return current;
  }

  async function fold<W extends Changing>(
    writes: readonly W[],
    again = false,
  ): Promise<FoldedBudgets<W>> {
    const current = await currentOf(writes, again);
    const after = new Map<string, BudgetUse>();
    const useOf = (name: string, key: Key) =>
      after.get(name) ?? current.get(name) ?? nothingKnown(key);
    const [allowed, refused]: [W[], W[]] = [[], []];
    for (const member of writes) {
      const changed = (member.write.budgets ?? []).map((change) => {
        const name = keyText(change.key);
        return { name, change, use: changedUse(useOf(name, change.key), change) };
      });
      const isAllowed = changed.every(({ change, use }) => fits(change, use));
      (isAllowed ? allowed : refused).push(member);
      if (isAllowed) changed.forEach(({ name, use }) => after.set(name, use));
    }
    const changed = [...after].map(([name, use]) => ({
      budget: current.get(name) ?? nothingKnown([name]),
      use,
    }));
    // A hold that another process has counted since the row was read ends here.
    if (!again && !changed.every(({ budget, use }) => isPossible(budget, use))) {
      return await fold(writes, true);
    }
    const rows = changed.map(({ budget, use }) => ({
      budget,
      use,
      set: { key: budget.key, value: encodeBudget(budget, use) },
    }));
    return {
      allowed,
      refused,
      checks: rows.map(({ budget: { key, version } }) => ({ key, version })),
      sets: rows.map(({ set }) => set),
      landed(version) {
        rows.forEach(({ budget, use }) => Object.assign(budget, use, { version }));
        allowed.forEach(({ write: { budgets } }) => budgets && end(budgets));
      },
      abandon: () => rows.forEach(({ budget }) => void (budget.stale = true)),
    };
  }

  return {
    load(budgets, again) {
      const isKnown = ({ projectId, name }: Budget) =>
        known.get(keyText(budgetKey(projectId, name)))?.stale === false;
      const wanted = again ? budgets : budgets.filter((budget) => !isKnown(budget));
      return wanted.length > 0 ? loadAll(wanted) : null;
    },
    use(key) {
      const { spent, held, expected } = known.get(keyText(key)) ?? nothingKnown(key);
      return { spent: toAmount(spent + expected.spent), held: toAmount(held + expected.held) };
    },
    expect(changes) {
      underWay.add(changes);
      move(changes, 1n);
    },
    end,
    fold: (writes) => fold(writes),
  };
}

function unused(spent: Amount): BudgetUse & { before: Amount } {
  return { spent, held: zero, before: spent };
}

function changedUse(use: BudgetUse, { spent, held }: BudgetChange): BudgetUse {
  return { spent: toAmount(use.spent + spent), held: toAmount(use.held + held) };
}

/**
 * Whether a budget allows a change, after which it is `use`. A change that lowers it is always
 * allowed.
 */
function fits({ spent, held, cap }: BudgetChange, use: BudgetUse): boolean {
  return cap === null || spent + held <= 0n || use.spent + use.held <= cap;
}

/** Whether a correct write may leave a budget so: no amount is below zero. */
function isPossible({ before }: Pick<Known, "before">, { spent, held }: BudgetUse): boolean {
  return spent >= before && held >= 0n;
}

/**
 * Encodes a budget's row. Throws for a budget that no correct write leaves: with an amount below
 * zero.
 */
function encodeBudget({ key, before }: Known, use: BudgetUse): Uint8Array {
  const { spent, held } = use;
  if (!isPossible({ before }, use)) {
    throw new Error(`budget ${key.join(" ")} has spent ${spent} and holds ${held}`);
  }
  const stored: StoredBudget = { spent: spent.toString(), held: held.toString() };
  if (before > 0n) stored.before = before.toString();
  return toBytes(stored);
}

/** Decodes a budget's row. */
export function decodeBudget(bytes: Uint8Array): BudgetUse & { before: Amount } {
  const { spent, held, before = "0" } = fromBytes<StoredBudget>(bytes);
  const [all, running, earlier] = [spent, held, before].map((text) => toAmount(BigInt(text)));
  return { spent: all ?? zero, held: running ?? zero, before: earlier ?? zero };
}

function nothingKnown(key: Key): never {
  throw new Error(`budget ${key.join(" ")} has not been read`);
}
