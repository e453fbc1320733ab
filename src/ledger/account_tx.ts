import { toBytes } from "../base/json.ts";
import type { MakeId } from "../base/ids.ts";
import { type Amount, fromDecimal, least, parseAmount, toAmount, zero } from "../base/money.ts";
import { bySystem, type NewEvent } from "../events/event.ts";
import { appendEvents } from "../events/outbox.ts";
import type { ProjectSnapshot } from "../projects/project_cache.ts";
import { userLimitsOf } from "../projects/user_limits.ts";
import { isLarge } from "../store/batch.ts";
import { accountKey, authorizationKey, entryKey, projectKey } from "../store/keys.ts";
import { emptyWrite, type Increment, type Key, type Row, type Write } from "../store/kv.ts";
import {
  type Account,
  accountLocation,
  type AccountRef,
  availableIn,
  encodeAccount,
  type Hold,
} from "./account.ts";
import { activityIdOfRequest, createEntry, type Entry, type NewEntry } from "./entry.ts";
import { countEntry } from "./count_entry.ts";
import { actorOfOrigin, entryEvents, type EntryOrigin, expiredHoldEvent } from "./events.ts";
import { SpendLimits } from "./spend_limits.ts";
import { leftIn, type SpendingBound } from "./bounds.ts";
import { budgetNames, TxBudgets } from "./tx_budgets.ts";
import { TxRows } from "./tx_rows.ts";
import type { Budget, Budgets } from "../store/budgets.ts";
import type { HasEnded } from "./hold_end.ts";
import { holdIndexKey } from "./store.ts";

interface AccountTxOptions {
  ref: AccountRef;
  account: Account;
  version: string | null;
  isNew: boolean;
  snapshot: ProjectSnapshot;
  rows: readonly Row[];
  budgets: Pick<Budgets, "use">;
  now: number;
  hasEnded: HasEnded;
  /** The id of this process. */
  holder: string;
  id: MakeId;
}

const noBudgets: readonly Budget[] = [];

/** Which bounds apply to a debit besides the balance. */
interface DebitOptions {
  /**
   * The part that limits do not bind: what a hold that has just ended had promised, since the limit
   * may have been lowered since, or all of what an operator books.
   */
  unlimited?: Amount;
  /** The budgets that the amount counts toward, and that bind the rest. */
  budgets?: readonly Budget[];
}

/**
 * One account while operations are applied to it, before the write. Holds that have ended are
 * removed first; a large number of them takes several writes. Discarded when the commit fails.
 */
export class AccountTx {
  readonly snapshot: ProjectSnapshot;
  readonly now: number;
  readonly account: Account;
  /** The project's and the wallet owner's limits on what this user may spend. */
  readonly spending: SpendLimits;
  /** The budgets that several users share. */
  readonly budgets: TxBudgets;
  readonly entries: Entry[] = [];
  #changed = false;
  readonly #options: AccountTxOptions;
  readonly #write: Write = emptyWrite();
  readonly #rows: TxRows;

  constructor(options: AccountTxOptions) {
    this.#options = options;
    this.snapshot = options.snapshot;
    this.now = options.now;
    this.account = { ...options.account, holds: [...options.account.holds] };
    this.#rows = new TxRows(this.#write, options.rows);
    const { ref: { projectId, user, wallet }, account, now, snapshot: { project } } = options;
    const row = wallet ? this.row(authorizationKey(projectId, user)) : null;
    const limits = userLimitsOf(project, user);
    this.spending = new SpendLimits({ wallet, row, account, limits, now });
    this.budgets = new TxBudgets(options.budgets, projectId);
    this.#removeEndedHolds();
    if (options.isNew && !wallet) this.#grantTrial();
  }

  /** Whether there is anything to write. */
  get changed(): boolean {
    return this.#changed || this.entries.length > 0 || this.spending.changed;
  }

  /** Whether the write is as large as it should get: another operation could be too much. */
  get isFull(): boolean {
    return isLarge(this.#write);
  }

  /** Tells whether a hold has ended, so that its money is free. */
  get hasEnded(): HasEnded {
    return this.#options.hasEnded;
  }

  /** Whether holds that have ended remain for a later write to remove. */
  get hasEndedHolds(): boolean {
    return this.ownHolds.some(this.hasEnded);
  }

  /**
   * The bounds of one more amount of this user: the balance, the wallet owner's grant, the
   * project's limits and these budgets. A refusal names the first that is too narrow.
   */
  bounds(budgets: readonly Budget[]): readonly SpendingBound[] {
    const balance: SpendingBound = {
      left: availableIn(this.account),
      withoutOwnHolds: this.account.balance,
      refusal: "insufficient_funds",
    };
    return [balance, ...this.spending.bounds(this.ownHeld), ...this.budgets.bounds(budgets)];
  }

  /** The holds of this user's connection: in a wallet others may hold money too. */
  get ownHolds(): readonly Hold[] {
    const { wallet } = this.#options.ref;
    const { holds } = this.account;
    return wallet ? holds.filter((hold) => hold.connectionId === wallet.connectionId) : holds;
  }

  /** The sum of `ownHolds`. */
  get ownHeld(): Amount {
    if (!this.#options.ref.wallet) return this.account.held;
    return this.ownHolds.reduce((sum, { amount }) => toAmount(sum + amount), zero);
  }

  /**
   * Returns a row that the operation listed in `reads`, including what earlier operations put
   * there.
   */
  row(key: Key): Uint8Array | null {
    return this.#rows.get(key);
  }

  /**
   * Writes a row together with the account. The commit fails if a row that was read has changed.
   */
  put(key: Key, value: Uint8Array): void {
    this.#changed = true;
    this.#rows.put(key, value);
  }

  /** Writes a row that no other operation of this write reads or changes. */
  add(key: Key, value: Uint8Array): void {
    this.#changed = true;
    this.#write.sets.push({ key, value });
  }

  /** Deletes a row together with the account's write. */
  remove(key: Key): void {
    this.#changed = true;
    this.#rows.remove(key);
  }

  /** Adds to stored sums, such as hourly counters, in the same write. */
  count(...increments: Increment[]): void {
    if (increments.length > 0) (this.#write.additions ??= []).push(...increments);
  }

  /** Emits events in the same write. */
  emit(...events: NewEvent[]): void {
    const { id, snapshot } = this.#options;
    appendEvents(this.#write, snapshot.project, { events, now: this.now, id });
  }

  /**
   * Adds to the balance and appends the entry for it, with its events. `recovered` is the part of
   * an earlier shortfall that is no longer due: it makes the entry's shortfall negative.
   */
  credit(amount: Amount, entry: NewEntry, origin: EntryOrigin, recovered: Amount = zero): Entry {
    return this.#append(amount, toAmount(-recovered), { entry, origin });
  }

  /**
   * Takes `amount`, or as much of it as is available, and appends the entry for it, with its
   * events. What could not be taken is the entry's shortfall. Held money is never taken. Limits
   * bind only what exceeds `unlimited`.
   */
  debit(
    amount: Amount,
    entry: NewEntry,
    origin: EntryOrigin,
    { unlimited = zero, budgets = noBudgets }: DebitOptions = {},
  ): Entry {
    const own = availableIn(this.account);
    const allowed = leftIn(this.bounds(budgets));
    const taken = least(amount, allowed < unlimited ? least(unlimited, own) : allowed);
    const { budgets: names } = entry;
    if (names) this.budgets.spend(names, taken, taken > unlimited ? budgets : noBudgets);
    return this.#append(toAmount(-taken), toAmount(amount - taken), { entry, origin });
  }

  /** Adds a hold. The caller has checked that the amount is available, also in the budgets. */
  addHold(
    hold: Omit<Hold, "connectionId" | "budgets" | "holder">,
    budgets: readonly Budget[],
  ): void {
    const { ref, holder } = this.#options;
    this.#changed = true;
    this.account.holds.push({
      ...hold,
      connectionId: ref.wallet?.connectionId ?? null,
      budgets: this.budgets.hold(budgets, hold.amount),
      holder,
    });
    this.account.held = toAmount(this.account.held + hold.amount);
    // A wallet is listed once for each connection, and the account does not track that.
    if (this.account.listed && !ref.wallet) return;
    this.account.listed = true;
    this.put(holdIndexKey(ref), toBytes({ ref }));
  }

  /** Removes this user from the hold index, because nothing is held for them any more. */
  dropFromSweep(): void {
    this.account.listed = false;
    this.remove(holdIndexKey(this.#options.ref));
  }

  /** Removes and returns a hold; null when it has ended or was settled. */
  takeHold(id: string): Hold | null {
    const at = this.#findHold(id);
    const hold = this.account.holds[at];
    if (!hold) return null;
    this.account.holds.splice(at, 1);
    this.#changed = true;
    this.account.held = toAmount(this.account.held - hold.amount);
    this.budgets.release(hold.budgets);
    return hold;
  }

  /** Extends a hold, and records what its call has used; false when it is gone. */
  renewHold(id: string, renewed: Pick<Hold, "used" | "expiresAt">): boolean {
    const at = this.#findHold(id);
    const hold = this.account.holds[at];
    if (!hold) return false;
    this.account.holds[at] = { ...hold, ...renewed };
    this.#changed = true;
    return true;
  }

  /** The position of a hold that has not ended; -1 where there is none. */
  #findHold(id: string): number {
    return this.account.holds.findIndex((hold) => hold.id === id && !this.hasEnded(hold));
  }

  /** Returns all changes as one write, valid only for the versions that were read. */
  finish(): Write {
    const { ref, version, snapshot, rows } = this.#options;
    const { owner, name } = accountLocation(ref);
    const key = accountKey(owner, name);
    this.#keepSpending();
    this.#assertEntries();
    this.#write.checks.push(
      { key, version },
      { key: projectKey(ref.projectId), version: snapshot.version },
      ...rows.map((row) => ({ key: row.key, version: row.version })),
    );
    this.#write.sets.push({ key, value: encodeAccount(this.account) });
    const { changes } = this.budgets;
    if (changes) this.#write.budgets = changes;
    return this.#write;
  }

  #append(
    delta: Amount,
    shortfall: Amount,
    { entry, origin }: { entry: NewEntry; origin: EntryOrigin },
  ): Entry {
    const { account } = this;
    account.balance = toAmount(account.balance + delta);
    const { ref, id: makeId } = this.#options;
    account.seq++;
    const id = entry.id ?? makeId("act");
    const moved = { user: ref.user, delta, shortfall, createdAt: this.now };
    const whole = createEntry({ ...entry, id, actor: actorOfOrigin(origin) }, account, moved);
    if (ref.wallet) whole.projectId = ref.projectId;
    account.last = whole.id;
    this.entries.push(whole);
    this.#write.sets.push({
      key: entryKey(accountLocation(ref).owner, whole.id),
      value: toBytes(whole),
    });
    const movement = { projectId: ref.projectId, delta, shortfall, spending: this.spending };
    (this.#write.additions ??= []).push(...countEntry(whole, movement));
    const balanceVersion = this.spending.countMove(account.seq);
    const about = { ref, project: this.snapshot.project, balanceVersion };
    this.emit(...entryEvents(whole, about, origin));
    return whole;
  }

  /** Throws unless the balance moved by exactly what the entries say. */
  #assertEntries(): void {
    const { account } = this.#options;
    // A closed account has moved to another name as a whole.
    if (this.account.closed) return;
    const moved = this.entries.reduce((sum, { delta }) => sum + fromDecimal(delta), 0n);
    if (
      account.balance + moved === this.account.balance &&
      account.seq + this.entries.length === this.account.seq
    ) return;
    throw new Error(
      `entries move a balance by ${moved}: ${account.balance} to ${this.account.balance}`,
    );
  }

  #keepSpending(): void {
    if (!this.spending.changed) return;
    const { projectId, user } = this.#options.ref;
    const { row, counters, use } = this.spending;
    if (row) this.put(authorizationKey(projectId, user), row);
    else Object.assign(this.account, { counters, use });
  }

  /** Grants the project's trial credits with a user's first operation. */
  #grantTrial(): void {
    const { trialCredits, status } = this.snapshot.project;
    const credits = status === "active" ? parseAmount(trialCredits) ?? zero : zero;
    if (credits > 0n) this.credit(credits, { kind: "trial" }, { trigger: bySystem });
  }

  /**
   * Removes this user's holds that have ended. Those of other connections are left to the sweep,
   * which ends them for their own project.
   */
  #removeEndedHolds(): void {
    for (const hold of takeEnded(this.account, this.ownHolds, this.hasEnded)) {
      const { id, used, amount: unlimited } = hold;
      this.budgets.release(hold.budgets);
      const budgets = budgetNames(hold.budgets);
      const entry = { id: activityIdOfRequest(id), metadata: { requestId: id }, budgets };
      this.debit(used, { kind: "expired", ...entry }, { trigger: bySystem }, { unlimited });
      this.emit(expiredHoldEvent(this.#options.ref, id));
    }
  }
}

/**
 * The most ended holds that one write removes. With events for 100 subscriptions they take some 400
 * KiB.
 */
const endedPerWriteMax = 24;

/**
 * Removes holds that have ended from an account, and returns those of `own` that this write
 * charges. All are removed at once, since what one held may pay for another. Of those that later
 * writes charge, only their last recorded use stays held.
 */
export function takeEnded(account: Account, own: readonly Hold[], hasEnded: HasEnded): Hold[] {
  if (!account.holds.some(hasEnded)) return [];
  const ending = own.filter(hasEnded).slice(0, endedPerWriteMax);
  account.holds = account.holds.filter((hold) => !ending.includes(hold)).map((hold) =>
    hasEnded(hold) ? { ...hold, amount: least(hold.amount, hold.used) } : hold
  );
  account.held = account.holds.reduce<Amount>((sum, { amount }) => toAmount(sum + amount), zero);
  return ending;
}
