import { type EntryReason, movementColumns } from "../base/entry_reasons.ts";
import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../base/money.ts";
import { type Entry, entryReason } from "../ledger/entry.ts";

const columnAt = new Map(
  movementColumns.map(({ reason, direction }, at) => [`${reason} ${direction}`, at]),
);

/** What entries moved, and what the responses among them cost. */
export class Movements {
  /** By column, with its sign: what it added to balances. */
  readonly #moved: Amount[] = movementColumns.map(() => zero);
  #calls = 0;
  #unknown = 0;
  #cost: Amount = zero;
  #margin: Amount = zero;
  #sum: Amount = zero;

  add(entry: Entry): void {
    const delta = fromDecimal(entry.delta);
    const direction = entry.delta.startsWith("-") ? "debit" : "credit";
    const reason = entryReason(entry);
    // A reason that moves one way has one column, also of an entry of zero.
    const at = columnAt.get(`${reason} ${direction}`) ??
      columnAt.get(`${reason} ${direction === "debit" ? "credit" : "debit"}`) ?? 0;
    this.#moved[at] = toAmount((this.#moved[at] ?? zero) + delta);
    this.#sum = toAmount(this.#sum + delta);
    if (entry.usage) this.#addCall(entry.usage.upstreamCost, delta);
  }

  /** The sum of all movements. */
  get sum(): Amount {
    return this.#sum;
  }

  /**
   * The figures of a row. Revenue is use, less what was given back for it. Cost and margin are of
   * the calls whose cost is known; null where that is none.
   */
  get figures(): StatementFigures {
    const moved = movementColumns.map(({ name }, at) =>
      [name, formatAmount(this.#moved[at] ?? zero)] as const
    );
    const of = (reason: EntryReason) =>
      movementColumns.reduce(
        (sum, column, at) => column.reason === reason ? sum + (this.#moved[at] ?? zero) : sum,
        0n,
      );
    const isKnown = this.#calls > this.#unknown;
    return {
      movements: Object.fromEntries(moved),
      revenue: formatAmount(-of("usage") - of("charge") - of("refund")),
      calls: this.#calls,
      callsWithUnknownCost: this.#unknown,
      cost: isKnown ? formatAmount(this.#cost) : null,
      margin: isKnown ? formatAmount(this.#margin) : null,
    };
  }

  #addCall(cost: string | undefined, delta: Amount): void {
    this.#calls++;
    if (cost === undefined) return void this.#unknown++;
    this.#cost = toAmount(this.#cost + fromDecimal(cost));
    this.#margin = toAmount(this.#margin - delta - fromDecimal(cost));
  }
}

/** The figures of one row of a statement; amounts are decimal strings with their sign. */
export interface StatementFigures {
  movements: Record<string, string>;
  revenue: string;
  calls: number;
  callsWithUnknownCost: number;
  cost: string | null;
  margin: string | null;
}
