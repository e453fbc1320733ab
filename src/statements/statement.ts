import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../base/money.ts";
import { actorOf, type Entry, entryReason } from "../ledger/entry.ts";
import { entryPages } from "../ledger/entry_pages.ts";
import type { Project } from "../projects/schema.ts";
import type { Kv } from "../store/kv.ts";
import { Movements, type StatementFigures } from "./movements.ts";
import { createDayOf, type Span } from "./span.ts";

/** By what a statement's rows are. */
export const statementGroups = ["day", "model", "user", "key", "reason"] as const;
/** By what a statement's rows are. */
export type StatementGroup = typeof statementGroups[number];

/** A line of a statement. Opening and closing are absent where they mean nothing. */
export interface StatementRow extends StatementFigures {
  /** The day, model, user, key or reason; empty where an entry has none. */
  group: string;
  opening?: string;
  closing?: string;
}

/** Whether a statement adds up. */
export interface StatementCheck {
  opening: string;
  movements: string;
  /** The sum of what users' last entries say their balances were. */
  closing: string;
  /** Closing, less opening and movements: zero. */
  difference: string;
}

/** What moved balances in a period, from its opening to its closing balance. */
export interface Statement extends Span {
  currency: string;
  group: StatementGroup;
  rows: StatementRow[];
  total: StatementRow;
  /** Null in the shared mode, where balances are not the project's. */
  check: StatementCheck | null;
}

/**
 * Sums all entries of a project up to the end of the period, in one pass. Opening and movements
 * come from what entries moved; the closing balance of the check comes from the balances that they
 * state.
 */
export async function readStatement(
  kv: Kv,
  project: Project,
  { group, ...period }: Span & { group: StatementGroup },
): Promise<Statement> {
  const sums = new StatementSums(period, group);
  for await (const entries of entryPages(kv, project, period.to)) {
    for (const entry of entries) sums.add(entry);
  }
  const { currency, mode } = project;
  const hasBalances = mode === "default";
  return { ...period, currency, group, ...sums.result(hasBalances) };
}

/** The last balance that a user's entries state, and the number of that entry. */
interface LastBalance {
  seq: number;
  balance: Amount;
}

class StatementSums {
  readonly #period: Span;
  readonly #group: StatementGroup;
  readonly #groupOf: (entry: Entry) => string;
  readonly #rows = new Map<string, Movements>();
  readonly #openings = new Map<string, Amount>();
  readonly #lasts = new Map<string, LastBalance>();
  readonly #total = new Movements();
  #opening: Amount = zero;

  constructor(period: Span, group: StatementGroup) {
    this.#period = period;
    this.#group = group;
    this.#groupOf = groupings[group](period.timeZone);
  }

  add(entry: Entry): void {
    this.#noteBalance(entry);
    if (entry.createdAt < this.#period.from) {
      const delta = fromDecimal(entry.delta);
      this.#opening = toAmount(this.#opening + delta);
      if (this.#group !== "user") return;
      this.#openings.set(entry.user, toAmount((this.#openings.get(entry.user) ?? zero) + delta));
      return;
    }
    this.#total.add(entry);
    const name = this.#groupOf(entry);
    const row = this.#rows.get(name) ?? new Movements();
    this.#rows.set(name, row);
    row.add(entry);
  }

  result(hasBalances: boolean): Pick<Statement, "rows" | "total" | "check"> {
    const opening = this.#opening;
    const closing = toAmount(opening + this.#total.sum);
    const ends = { opening: formatAmount(opening), closing: formatAmount(closing) };
    const total = { group: "", ...(hasBalances ? ends : {}), ...this.#total.figures };
    const names = new Set([...this.#rows.keys(), ...this.#openings.keys()]);
    let before = opening;
    const rows = [...names].sort().map((group): StatementRow => {
      const row = this.#rows.get(group) ?? new Movements();
      const begin = this.#group === "day" ? before : this.#openings.get(group) ?? zero;
      const end = toAmount(begin + row.sum);
      if (this.#group === "day") before = end;
      const hasEnds = hasBalances && (this.#group === "day" || this.#group === "user");
      const own = hasEnds ? { opening: formatAmount(begin), closing: formatAmount(end) } : {};
      return { group, ...own, ...row.figures };
    });
    return { rows, total, check: hasBalances ? this.#check() : null };
  }

  #check(): StatementCheck {
    const stated = [...this.#lasts.values()].reduce((sum, { balance }) => sum + balance, 0n);
    const moved = this.#total.sum;
    return {
      opening: formatAmount(this.#opening),
      movements: formatAmount(moved),
      closing: formatAmount(stated),
      difference: formatAmount(stated - this.#opening - moved),
    };
  }

  #noteBalance({ user, seq, balanceAfter }: Entry): void {
    const last = this.#lasts.get(user);
    if (last && last.seq > seq) return;
    const balance = fromDecimal(balanceAfter);
    if (last) Object.assign(last, { seq, balance });
    else this.#lasts.set(user, { seq, balance });
  }
}

const groupings: Record<StatementGroup, (timeZone: string) => (entry: Entry) => string> = {
  day(timeZone) {
    const dayOf = createDayOf(timeZone);
    return ({ createdAt }) => dayOf(createdAt);
  },
  model: () => ({ usage }) => usage?.model ?? "",
  user: () => ({ user }) => user,
  key: () => (entry) => {
    const actor = actorOf(entry);
    return actor?.type === "key" ? actor.id : "";
  },
  reason: () => entryReason,
};

/** The balance of a user at an instant, as a decimal string. */
export interface BalanceAt {
  user: string;
  balance: string;
}

/** What a project owes its users at an instant (ms since 1970), by user. */
export async function readBalancesAt(
  kv: Kv,
  project: Project,
  at: number,
): Promise<{ balances: BalanceAt[]; total: string }> {
  const lasts = new Map<string, LastBalance>();
  for await (const entries of entryPages(kv, project, at)) {
    for (const { user, seq, balanceAfter } of entries) {
      if ((lasts.get(user)?.seq ?? 0) > seq) continue;
      lasts.set(user, { seq, balance: fromDecimal(balanceAfter) });
    }
  }
  const balances = [...lasts].sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([user, { balance }]) => ({ user, balance: formatAmount(balance) }));
  const total = [...lasts.values()].reduce((sum, { balance }) => sum + balance, 0n);
  return { balances, total: formatAmount(total) };
}
