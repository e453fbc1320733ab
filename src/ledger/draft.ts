import { toBytes } from "../base/json.ts";
import type { MakeId } from "../base/ids.ts";
import { type Amount, least, parseAmount, toAmount, zero } from "../base/money.ts";
import { bySystem, type NewEvent } from "../events/event.ts";
import { appendEvents } from "../events/outbox.ts";
import type { ProjectSnapshot } from "../projects/directory.ts";
import { isLarge } from "../store/batch.ts";
import { accountKey, authorizationKey, entryKey, projectKey } from "../store/keys.ts";
import { emptyWrite, type Key, type Row, type Write } from "../store/kv.ts";
import {
  type Account,
  type AccountRef,
  availableIn,
  encodeAccount,
  type Hold,
  isExpired,
  placeOf,
} from "./account.ts";
import { takeExpired } from "./expiry.ts";
import { countEntry } from "./counting.ts";
import { DraftRows } from "./draft_rows.ts";
import { activityOfRequest, type Entry, entryOf, type NewEntry } from "./entry.ts";
import { eventsOf, expiredRequest, type Origin } from "./events.ts";
import { Spending } from "./spending.ts";
import { holdingKeyOf } from "./store.ts";

interface DraftOptions {
  ref: AccountRef;
  account: Account;
  version: string | null;
  isNew: boolean;
  snapshot: ProjectSnapshot;
  rows: readonly Row[];
  now: number;
  id: MakeId;
}

/**
 * One account while operations are applied to it, before anything is written. Holds that have expired
 * are ended first; very many of them by several writes. Thrown away when the commit fails.
 */
export class Draft {
  readonly snapshot: ProjectSnapshot;
  readonly now: number;
  readonly account: Account;
  /** What bounds its user beside the money. */
  readonly spending: Spending;
  readonly entries: Entry[] = [];
  #changed = false;
  readonly #options: DraftOptions;
  readonly #write: Write = emptyWrite();
  readonly #rows: DraftRows;

  constructor(options: DraftOptions) {
    this.#options = options;
    this.snapshot = options.snapshot;
    this.now = options.now;
    this.account = { ...options.account, holds: [...options.account.holds] };
    this.#rows = new DraftRows(this.#write, options.rows);
    const { ref: { projectId, user, wallet }, account, now, snapshot: { project } } = options;
    const row = wallet ? this.row(authorizationKey(projectId, user)) : null;
    this.spending = new Spending({ wallet, row, account, limits: project.limits.user, now });
    this.#endExpiredHolds();
    if (options.isNew && !wallet) this.#grantTrial();
  }

  /** Whether there is anything to write. */
  get changed(): boolean {
    return this.#changed || this.entries.length > 0 || this.spending.changed;
  }

  /** Whether the write is as large as it should become: one operation more could be too much. */
  get isFull(): boolean {
    return isLarge(this.#write);
  }

  /** Whether holds have expired that a later write has to end. */
  get hasExpired(): boolean {
    return this.ownHolds.some((hold) => isExpired(hold, this.now));
  }

  /** What can be spent now: of a wallet, as much as its owner allows for today. */
  get available(): Amount {
    const own = availableIn(this.account);
    const allowance = this.spending.allowance(this.ownHeld);
    return allowance === null ? own : least(own, allowance);
  }

  /** What of it the project's limits of a day and a month leave. */
  get spendable(): Amount {
    const budget = this.spending.budget(this.ownHeld);
    return budget === null ? this.available : least(this.available, budget);
  }

  /** The same if none of their own answers were running. */
  get alone(): Amount {
    const { spending, account: { balance } } = this;
    return [spending.allowance(zero), spending.budget(zero)]
      .reduce<Amount>((most, bound) => (bound === null ? most : least(most, bound)), balance);
  }

  /** The holds of whom this is for: in a wallet others may hold too. */
  get ownHolds(): readonly Hold[] {
    const { wallet } = this.#options.ref;
    const { holds } = this.account;
    return wallet ? holds.filter((hold) => hold.connectionId === wallet.connectionId) : holds;
  }

  /** What they hold. */
  get ownHeld(): Amount {
    if (!this.#options.ref.wallet) return this.account.held;
    return this.ownHolds.reduce((sum, { amount }) => toAmount(sum + amount), zero);
  }

  /** A row that the operation asked for in `reads`, with what earlier operations put there. */
  row(key: Key): Uint8Array | null {
    return this.#rows.get(key);
  }

  /** Writes a row together with the account; a row that was read must still be as it was. */
  put(key: Key, value: Uint8Array): void {
    this.#changed = true;
    this.#rows.put(key, value);
  }

  /** Removes a row together with the account's write. */
  remove(key: Key): void {
    this.#changed = true;
    this.#rows.remove(key);
  }

  /** Says that something happened, in the same write. */
  emit(...events: NewEvent[]): void {
    const { id, snapshot } = this.#options;
    appendEvents(this.#write, snapshot.project, { events, now: this.now, id });
  }

  /**
   * Adds to the balance and appends the entry that says why, with its events; what was short before
   * and is `recovered` is less than no shortfall.
   */
  credit(amount: Amount, entry: NewEntry, origin: Origin, recovered: Amount = zero): Entry {
    return this.#append(amount, toAmount(-recovered), { entry, origin });
  }

  /**
   * Takes `amount`, or as much of it as is available, and appends the entry that says why, with its
   * events; the rest is its shortfall. Takes nothing that is held. What is paid back minds no limit, nor
   * does what was `promised` by a hold that has just ended: the limit may have been lowered since.
   */
  debit(amount: Amount, entry: NewEntry, origin: Origin, promised: Amount = zero): Entry {
    const own = availableIn(this.account);
    const allowed = entry.kind === "refund" ? own : this.spendable;
    const taken = least(amount, allowed < promised ? least(promised, own) : allowed);
    return this.#append(toAmount(-taken), toAmount(amount - taken), { entry, origin });
  }

  /** Puts money aside. The caller has seen that it is available. */
  addHold(hold: Omit<Hold, "connectionId">): void {
    const { ref } = this.#options;
    this.#changed = true;
    this.account.holds.push({ ...hold, connectionId: ref.wallet?.connectionId ?? null });
    this.account.held = toAmount(this.account.held + hold.amount);
    // A wallet is listed for each connection, which the account does not keep count of.
    if (this.account.listed && !ref.wallet) return;
    this.account.listed = true;
    this.put(holdingKeyOf(ref), toBytes({ ref }));
  }

  /** Says that nothing is held any more for whom this is for. */
  unlist(): void {
    this.account.listed = false;
    this.remove(holdingKeyOf(this.#options.ref));
  }

  /** Takes a hold away; null when it is gone, because it has expired or was settled. */
  takeHold(id: string): Hold | null {
    const hold = this.account.holds.find((hold) => hold.id === id);
    if (!hold || isExpired(hold, this.now)) return null;
    this.account.holds.splice(this.account.holds.indexOf(hold), 1);
    this.#changed = true;
    this.account.held = toAmount(this.account.held - hold.amount);
    return hold;
  }

  /** Everything as one write, which holds only for the versions that were read. */
  finish(): Write {
    const { ref, version, snapshot, rows } = this.#options;
    const { owner, name } = placeOf(ref);
    const key = accountKey(owner, name);
    this.#keepSpending();
    this.#write.checks.push(
      { key, version },
      { key: projectKey(ref.projectId), version: snapshot.version },
      ...rows.map((row) => ({ key: row.key, version: row.version })),
    );
    this.#write.sets.push({ key, value: encodeAccount(this.account) });
    return this.#write;
  }

  #append(
    delta: Amount,
    shortfall: Amount,
    { entry, origin }: { entry: NewEntry; origin: Origin },
  ): Entry {
    const { account } = this;
    account.balance = toAmount(account.balance + delta);
    const { ref, id: makeId } = this.#options;
    account.seq++;
    const id = entry.id ?? makeId("act");
    const moved = { user: ref.user, delta, shortfall, createdAt: this.now };
    const whole = entryOf({ ...entry, id }, account, moved);
    if (ref.wallet) whole.projectId = ref.projectId;
    account.last = whole.id;
    this.entries.push(whole);
    this.#write.sets.push({ key: entryKey(placeOf(ref).owner, whole.id), value: toBytes(whole) });
    const movement = { projectId: ref.projectId, delta, shortfall, spending: this.spending };
    (this.#write.additions ??= []).push(countEntry(whole, movement));
    this.emit(...eventsOf(whole, { ref, project: this.snapshot.project }, origin));
    return whole;
  }

  #keepSpending(): void {
    if (!this.spending.changed) return;
    const { projectId, user } = this.#options.ref;
    const { row, counters, use } = this.spending;
    if (row) this.put(authorizationKey(projectId, user), row);
    else Object.assign(this.account, { counters, use });
  }

  /** A user's first operation brings the project's trial credits along. */
  #grantTrial(): void {
    const { trialCredits, status } = this.snapshot.project;
    const credits = status === "active" ? parseAmount(trialCredits) ?? zero : zero;
    if (credits > 0n) this.credit(credits, { kind: "trial" }, { trigger: bySystem });
  }

  /** Those of other connections are for the sweep, which ends them in their own project's name. */
  #endExpiredHolds(): void {
    for (const { id, used, amount } of takeExpired(this.account, this.ownHolds, this.now)) {
      const entry = { id: activityOfRequest(id), metadata: { requestId: id } };
      this.debit(used, { kind: "expired", ...entry }, { trigger: bySystem }, amount);
      this.emit(expiredRequest(this.#options.ref, id));
    }
  }
}
