import { ApiError, isStoreAway } from "../base/errors.ts";
import { createLocks } from "../base/locks.ts";
import type { Deps } from "../deps.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import { keyText } from "../store/batch.ts";
import { backOff, isWorthAttempt } from "../store/backoff.ts";
import { accountKey, authorizationKey } from "../store/keys.ts";
import type { Key, Row } from "../store/kv.ts";
import type { Budget } from "../store/budgets.ts";
import { createRowTurns } from "../store/row_turns.ts";
import type { TopUsers } from "../summaries/top_users.ts";
import {
  type Account,
  accountLocation,
  type AccountRef,
  decodeAccount,
  requireNotClosed,
} from "./account.ts";
import { createAccountCache } from "./account_cache.ts";
import { AccountTx } from "./account_tx.ts";
import { holdsEndedBy } from "./hold_end.ts";
import { createSeenKeys } from "./seen_keys.ts";

/**
 * Operations on one account, one after the other. The only way that money moves, except between two
 * wallets of one person: `transfer.ts`.
 */
export interface AccountQueue {
  /** Resolves once the operation's decision is durable. Throws 503 when it cannot be. */
  run<T>(ref: AccountRef, operation: AccountOp<T>): Promise<T>;
  /** Resolves after this process next writes the account, or when `signal` aborts. */
  changed(ref: AccountRef, signal: AbortSignal): Promise<void>;
}

/** Operations on one account, for one user, that arrived while the previous write was under way. */
interface Lane {
  ref: AccountRef;
  /** The account's row, and its name in this process. */
  row: Key;
  name: string;
  waiting: QueuedOp[];
  /** The account's version in a write that was refused. */
  tried?: string | null | undefined;
  /**
   * Since when the lane's operations were put back because another process wrote first, and how
   * often.
   */
  refused: { since: number; times: number } | null;
}

const writeMarginChecks = 4;

/**
 * Combines the operations that wait for one account into one write (one read, many operations, one
 * check). A busy user costs one commit for many requests and never conflicts with itself. The check
 * on the account's version decides: when another process wrote in between, everything is read and
 * applied again. Processes that write one account take turns.
 */
export function createAccountQueue(
  deps: Pick<
    Deps,
    "kv" | "committer" | "clock" | "id" | "randomBytes" | "metrics" | "holders"
  >,
  services: { projectCache: ProjectCache; topUsers: Pick<TopUsers, "observe"> },
): AccountQueue {
  const lanes = new Map<string, Lane>();
  const cache = createAccountCache(deps.clock, deps.kv.limits);
  const seenKeys = createSeenKeys();
  const turns = createRowTurns(deps);
  const wallets = createLocks();
  const listeners = new Map<string, Set<() => void>>();
  const readsMax = deps.kv.limits.checks - writeMarginChecks;

  async function drain(laneName: string, lane: Lane): Promise<void> {
    while (lane.waiting.length > 0) {
      // The lanes of a wallet are one account's: they would refuse each other.
      if (lane.ref.wallet) await wallets.run(lane.name, () => drainOnce(lane));
      else await drainOnce(lane);
    }
    lanes.delete(laneName);
    if (!lane.ref.wallet || wallets.waiting(lane.name) === 0) turns.rest(lane.row);
  }

  async function drainOnce(lane: Lane): Promise<void> {
    const { name, row } = lane;
    try {
      const turn = turns.mustWait(row) ? await turns.wait(row) : null;
      if (turn) cache.onTurn(name, readRow(turn));
    } catch (error) {
      return lane.waiting.splice(0).forEach((waiting) => waiting.reject(error));
    }
    const batch = takeBatch(lane.waiting, readsMax);
    await settleBatch(lane, batch).catch((error) => {
      // A store that does not answer is not called again for those that wait.
      const failed = isStoreAway(error) ? [...batch, ...lane.waiting.splice(0)] : batch;
      failed.forEach((waiting) => waiting.reject(error));
    });
  }

  /** Decides and writes a batch. Operations that need another write go back to the lane. */
  async function settleBatch(lane: Lane, batch: QueuedOp[]): Promise<void> {
    const { elapsed } = deps.clock;
    const { name, ref } = lane;
    const startedAt = elapsed();
    for (let attempt = 0; isWorthAttempt(attempt, elapsed() - startedAt); attempt++) {
      if (attempt > 0) await backOff(deps, attempt);
      const { tx, fresh, unread, version: found } = await openTx(name, ref, batch, attempt);
      // Else another row was changed, for which nobody has to wait.
      if (lane.tried !== undefined && lane.tried !== found) turns.refused(lane.row);
      lane.tried = undefined;
      if (turns.mustWait(lane.row)) return putBack(lane, batch);
      const decisions: PendingReply[] = [];
      for (const waiting of batch) {
        const isTentative = decisions.length > 0 && tx.changed;
        const decision = waiting.decide(tx);
        if (decision.failed && isTentative) {
          // What it failed on may never be durable: those before it are written first.
          lane.waiting.unshift(...batch.splice(decisions.length));
          return await settleBatch(lane, batch);
        }
        decisions.push(decision);
        if (tx.isFull) break;
      }
      if (!fresh && decisions.some(({ refused }) => refused)) {
        cache.forget(name);
        continue;
      }
      if (decisions.some(({ failed }) => failed)) {
        decisions.forEach(({ failed, reply }) => failed && reply());
        return void lane.waiting.unshift(...batch.filter((_, at) => !decisions[at]?.failed));
      }
      if (tx.changed) {
        const left = lane.waiting.length + batch.length - decisions.length;
        const version = await commitTx(lane, tx, left);
        if (version === null && unread.length > 0) seenKeys.onCollision();
        if (version === null) {
          lane.tried = found;
          continue;
        }
        cache.onWritten(name, { account: tx.account, version }, !fresh);
        const { use } = tx.spending;
        if (use) services.topUsers.observe(ref.projectId, ref.user, use);
        tx.entries.forEach((entry) => deps.metrics.entry(entry, tx.snapshot.project.currency));
      }
      decisions.forEach(({ reply }) => reply());
      if (tx.changed) notify(name);
      return void lane.waiting.unshift(...batch.slice(decisions.length));
    }
    throw accountContended();
  }

  /**
   * Puts a batch back because another process has the turn: it waits for this process's next turn.
   */
  function putBack(lane: Lane, batch: QueuedOp[]): void {
    const now = deps.clock.elapsed();
    const { since, times } = lane.refused ??= { since: now, times: 0 };
    if (!isWorthAttempt(times, now - since)) throw accountContended();
    lane.refused.times++;
    lane.waiting.unshift(...batch);
  }

  async function openTx(name: string, ref: AccountRef, batch: QueuedOp[], attempt: number) {
    const known = cache.find(name);
    // A decision that writes nothing is only trusted on a fresh record, so then everything is read.
    const mustRead = (name: string) => !seenKeys.isNew(name) || !known || attempt > 0;
    const { keys, unread } = rowsToRead(batch, mustRead);
    if (ref.wallet) keys.push(authorizationKey(ref.projectId, ref.user));
    const place = accountLocation(ref);
    const wanted = known ? keys : [accountKey(place.owner, place.name), ...keys];
    const rows: Row[] = wanted.length > 0 ? await deps.kv.getMany(wanted) : [];
    const { account, version } = known ?? readRow(rows.shift());
    if (!known) cache.onRead(name, version);
    rows.push(...unread.map((key) => ({ key, value: null, version: null })));
    requireNotClosed(account);
    const snapshot = attempt === 0
      ? await services.projectCache.current(ref.projectId)
      : await services.projectCache.refresh(ref.projectId);
    const budgets = budgetsOf(batch);
    const again = attempt > 0 && deps.kv.limits.isShared;
    const loading = budgets.length > 0 ? deps.committer.budgets.load(budgets, again) : null;
    if (loading) await loading;
    // Another process may have ended a hold that counts toward a budget.
    const isSure = budgets.length === 0 || !deps.kv.limits.isShared || attempt > 0;
    const { id, clock, holders } = deps;
    const now = clock.now();
    const isNew = version === null &&
      !batch.every(({ operation }) => operation.existingHoldOnly) &&
      !batch.some(({ operation }) => operation.bringsBalance);
    const tx = new AccountTx({
      ref,
      account,
      version,
      isNew,
      snapshot,
      rows,
      budgets: deps.committer.budgets,
      now,
      hasEnded: holdsEndedBy(deps, now),
      holder: holders.own,
      id,
    });
    return { tx, fresh: !known && isSure, unread, version };
  }

  async function commitTx(lane: Lane, tx: AccountTx, left: number): Promise<string | null> {
    const { name, row } = lane;
    const others = lane.ref.wallet ? wallets.waiting(name) : 0;
    const step = turns.step(row, left + others);
    const write = tx.finish();
    write.sets.push(...step.sets);
    write.deletes.push(...step.deletes);
    const startedAt = deps.clock.elapsed();
    try {
      const version = await deps.committer.commit(write);
      if (version === null) cache.onRefused(name);
      else {
        turns.written(row, deps.clock.elapsed() - startedAt, step);
        lane.refused = null;
      }
      return version;
    } catch (error) {
      cache.forget(name);
      throw error;
    }
  }

  function notify(name: string): void {
    const waiting = listeners.get(name);
    listeners.delete(name);
    waiting?.forEach((wake) => wake());
  }

  return {
    run<T>(ref: AccountRef, operation: AccountOp<T>): Promise<T> {
      // In a wallet each connection has its own lane, since an operation belongs to one project.
      const laneName = ref.wallet
        ? keyText([accountNameOf(ref), ref.projectId, ref.user, ref.wallet.connectionId])
        : accountNameOf(ref);
      return new Promise<T>((resolve, reject) => {
        const waiting = { operation, decide: createDecider(operation, resolve, reject), reject };
        const lane = lanes.get(laneName);
        if (lane) return void lane.waiting.push(waiting);
        const { owner, name } = accountLocation(ref);
        const opened: Lane = {
          ref,
          row: accountKey(owner, name),
          name: accountNameOf(ref),
          waiting: [waiting],
          refused: null,
        };
        lanes.set(laneName, opened);
        drain(laneName, opened);
      });
    },
    changed(ref, signal) {
      const name = accountNameOf(ref);
      const wakers = listeners.get(name) ?? new Set();
      listeners.set(name, wakers);
      return new Promise((resolve) => {
        const wake = () => {
          wakers.delete(wake);
          if (wakers.size === 0 && listeners.get(name) === wakers) listeners.delete(name);
          signal.removeEventListener("abort", wake);
          resolve();
        };
        wakers.add(wake);
        signal.addEventListener("abort", wake, { once: true });
      });
    },
  };
}

function readRow(row: Row | undefined): { account: Account; version: string | null } {
  return { account: decodeAccount(row?.value ?? null), version: row?.version ?? null };
}

/** A name that is unique for each account. */
function accountNameOf(ref: AccountRef): string {
  const { owner, name } = accountLocation(ref);
  return keyText([owner, name]);
}

/** 503: other writers kept changing the account. Nothing was changed. */
export function accountContended(): ApiError {
  return new ApiError(503, {
    message: "Too many concurrent writes to this account. Try again.",
    type: "service_unavailable_error",
    code: "account_contended",
    headers: { "retry-after": "1" },
  });
}

/** The decision of an operation. A refusal is only trusted on a record that was just read. */
export interface OpResult<T> {
  value: T;
  refused?: boolean;
}

/** One operation on one account. `apply` may run several times; only the last run is written. */
export interface AccountOp<T> {
  /** Rows that the operation needs besides the account. The commit checks them too. */
  reads: readonly Key[];
  /**
   * A row that the operation creates unless it exists: read only where that is likely, but always
   * checked.
   */
  uniqueKey?: Key | null;
  /** Estimated size of the operation's write, in bytes. */
  estimatedBytes: number;
  /** The budgets that the operation looks at. */
  budgets?: readonly Budget[];
  /** Concerns an existing hold: must not create an account or grant trial credits. */
  existingHoldOnly?: true;
  /** Brings a balance along: a new user gets no trial credits on top of it. */
  bringsBalance?: boolean;
  /**
   * Decides, and changes the transaction. An error reaches only the operation's own caller, and
   * undoes its changes.
   */
  apply(tx: AccountTx): OpResult<T>;
}

/** An operation waiting for its turn. */
export interface QueuedOp {
  operation: Omit<AccountOp<unknown>, "apply">;
  decide(tx: AccountTx): PendingReply;
  reject: (error: unknown) => void;
}

/** An operation's decision, to be delivered once it is durable. */
interface PendingReply {
  reply: () => void;
  refused: boolean;
  /** Whether the operation threw, and may have left the transaction half changed. */
  failed: boolean;
}

const opsPerWriteMax = 64;
const bytesPerWriteMax = 256 * 1024;

/** Takes as many operations as one write should carry, in order; at least one. */
export function takeBatch(waiting: QueuedOp[], readsMax: number): QueuedOp[] {
  let bytes = 0;
  let reads = 0;
  let count = 0;
  for (const { operation } of waiting) {
    bytes += operation.estimatedBytes;
    reads += operation.reads.length + (operation.uniqueKey ? 1 : 0);
    if (count > 0 && (count >= opsPerWriteMax || bytes > bytesPerWriteMax || reads > readsMax)) {
      break;
    }
    count++;
  }
  return waiting.splice(0, count);
}

/** Applies an operation, and keeps its reply until the write is durable. */
function createDecider<T>(
  operation: AccountOp<T>,
  resolve: (value: T) => void,
  reject: (error: unknown) => void,
): QueuedOp["decide"] {
  return (tx) => {
    try {
      const { value, refused = false } = operation.apply(tx);
      return { refused, failed: false, reply: () => resolve(value) };
    } catch (error) {
      return { refused: true, failed: true, reply: () => reject(error) };
    }
  };
}

const noBudgets: readonly Budget[] = [];

/** The budgets that operations look at. */
function budgetsOf(batch: readonly QueuedOp[]): readonly Budget[] {
  let budgets = noBudgets;
  for (const { operation: { budgets: own } } of batch) {
    if (own && own.length > 0) budgets = budgets.length === 0 ? own : [...budgets, ...own];
  }
  return budgets;
}

/** The rows that operations read, each once, and those that they create without reading first. */
function rowsToRead(
  batch: QueuedOp[],
  mustRead: (name: string) => boolean,
): { keys: Key[]; unread: Key[] } {
  const keys = new Map<string, Key>();
  const unread = new Map<string, Key>();
  for (const { operation: { reads, uniqueKey } } of batch) {
    for (const key of reads) keys.set(keyText(key), key);
    if (!uniqueKey) continue;
    const name = keyText(uniqueKey);
    if (unread.has(name) || keys.has(name)) continue;
    (mustRead(name) ? keys : unread).set(name, uniqueKey);
  }
  return { keys: [...keys.values()], unread: [...unread.values()] };
}
