import { ApiError, isStoreAway } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import { keyText } from "../store/batch.ts";
import { backOff, giveTurn, isWorthAttempt } from "../store/backoff.ts";
import { accountKey, authorizationKey } from "../store/keys.ts";
import type { Key, Row } from "../store/kv.ts";
import type { Budget } from "../store/budgets.ts";
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

/** The only way that money moves: operations on one account, one after the other. */
export interface AccountQueue {
  /** Resolves once the operation's decision is durable. Throws 503 when it cannot be. */
  run<T>(ref: AccountRef, operation: AccountOp<T>): Promise<T>;
  /** Resolves after this process next writes the account, or when `signal` aborts. */
  changed(ref: AccountRef, signal: AbortSignal): Promise<void>;
}

/** Operations on one account, for one user, that arrived while the previous write was under way. */
interface Lane {
  ref: AccountRef;
  waiting: QueuedOp[];
}

const writeMarginChecks = 4;

/**
 * Combines the operations that wait for one account into one write (one read, many operations, one
 * check). A busy user costs one commit for many requests and never conflicts with itself. The check
 * on the account's version decides: when another process wrote in between, everything is read and
 * applied again. Processes that write one account take turns.
 */
export function createAccountQueue(
  deps: Pick<Deps, "kv" | "committer" | "clock" | "id" | "randomBytes" | "metrics">,
  services: { projectCache: ProjectCache; topUsers: Pick<TopUsers, "observe"> },
): AccountQueue {
  const lanes = new Map<string, Lane>();
  const cache = createAccountCache(deps.clock, deps.kv.limits);
  const claims = createSeenKeys();
  let lastWriteMs = 0;
  const listeners = new Map<string, Set<() => void>>();
  const readsMax = deps.kv.limits.checks - writeMarginChecks;

  async function drain(laneName: string, lane: Lane): Promise<void> {
    const name = accountNameOf(lane.ref);
    while (lane.waiting.length > 0) {
      if (cache.isContended(name)) await giveTurn(deps, lastWriteMs);
      const batch = takeBatch(lane.waiting, readsMax);
      await settleBatch(name, lane.ref, batch).catch((error) => {
        // A store that does not answer is not called again for those that wait.
        const failed = isStoreAway(error) ? [...batch, ...lane.waiting.splice(0)] : batch;
        failed.forEach((waiting) => waiting.reject(error));
      });
    }
    lanes.delete(laneName);
  }

  async function settleBatch(name: string, ref: AccountRef, batch: QueuedOp[]): Promise<void> {
    const { elapsed } = deps.clock;
    const startedAt = elapsed();
    for (let attempt = 0; isWorthAttempt(attempt, elapsed() - startedAt); attempt++) {
      if (attempt > 0) await backOff(deps, attempt);
      const { tx, fresh, unread } = await openTx(name, ref, batch, attempt);
      const decisions: PendingReply[] = [];
      for (const waiting of batch) {
        decisions.push(waiting.decide(tx));
        if (tx.isFull) break;
      }
      if (!fresh && decisions.some(({ refused }) => refused)) {
        cache.forget(name);
        continue;
      }
      if (decisions.some(({ failed }) => failed)) {
        decisions.forEach(({ failed, reply }) => failed && reply());
        const others = batch.filter((_, at) => !decisions[at]?.failed);
        return others.length > 0 ? await settleBatch(name, ref, others) : undefined;
      }
      if (tx.changed) {
        const version = await commitTx(name, tx);
        if (version === null && unread.length > 0) claims.onCollision();
        if (version === null) continue;
        cache.onWritten(name, { account: tx.account, version }, !fresh);
        const { use } = tx.spending;
        if (use) services.topUsers.observe(ref.projectId, ref.user, use);
        tx.entries.forEach((entry) => deps.metrics.entry(entry, tx.snapshot.project.currency));
      }
      decisions.forEach(({ reply }) => reply());
      if (tx.changed) notify(name);
      const others = batch.slice(decisions.length);
      return others.length > 0 ? await settleBatch(name, ref, others) : undefined;
    }
    throw accountContended();
  }

  async function openTx(name: string, ref: AccountRef, batch: QueuedOp[], attempt: number) {
    const known = cache.find(name);
    // A decision that writes nothing is only trusted on a fresh record, so then everything is read.
    const looksFor = (claim: string) => !claims.isNew(claim) || !known || attempt > 0;
    const { keys, unread } = rowsToRead(batch, looksFor);
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
    const { id, clock } = deps;
    const isNew = version === null && !batch.every(({ operation }) => operation.existingHoldOnly);
    const tx = new AccountTx({
      ref,
      account,
      version,
      isNew,
      snapshot,
      rows,
      budgets: deps.committer.budgets,
      now: clock.now(),
      id,
    });
    return { tx, fresh: !known && isSure, unread };
  }

  async function commitTx(name: string, tx: AccountTx): Promise<string | null> {
    const startedAt = deps.clock.elapsed();
    try {
      const version = await deps.committer.commit(tx.finish());
      if (version === null) cache.onRefused(name);
      lastWriteMs = deps.clock.elapsed() - startedAt;
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
        const opened = { ref, waiting: [waiting] };
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

/** Which rows a write may create without reading them first. */
export interface SeenKeys {
  /** Whether this process has not seen the key before, as far as it remembers. Remembers it. */
  isNew(name: string): boolean;
  /**
   * Reports that a row which was new here existed, as after a restart or beside another process.
   */
  onCollision(): void;
}

/** The least number of names to remember; at most twice as many are kept. */
const seenKeysMin = 10_000;
/** A write that meets an existing row makes its whole batch retry one by one: that must be rare. */
const cautiousReadsAfterCollision = 10_000;

/**
 * A caller that repeats a request does so soon, and mostly to the same process. A key that was not
 * seen here is taken for new until the write's check says otherwise, which saves a read each.
 */
export function createSeenKeys(): SeenKeys {
  let names = new Set<string>();
  let before = new Set<string>();
  let ware = 0;

  function remember(name: string): void {
    if (names.size >= seenKeysMin) {
      before = names;
      names = new Set();
    }
    names.add(name);
  }

  return {
    isNew(name) {
      const isKnown = names.has(name) || before.has(name);
      remember(name);
      if (ware === 0) return !isKnown;
      ware--;
      return false;
    },
    onCollision() {
      ware = cautiousReadsAfterCollision;
    },
  };
}

/** What an operation decided. A refusal is only trusted on a record that was just read. */
export interface OpResult<T> {
  value: T;
  refused?: boolean;
}

/** One operation on one account. `apply` may run several times; only the last run is written. */
export interface AccountOp<T> {
  /** Rows that it needs besides the account; the commit checks them too. */
  reads: readonly Key[];
  /** A row that it creates unless it exists: read only where that is likely, but always checked. */
  uniqueKey?: Key | null;
  /** Estimated size of its write, in bytes. */
  estimatedBytes: number;
  /** The budgets that it looks at. */
  budgets?: readonly Budget[];
  /** Concerns an existing hold: must not create an account or grant trial credits. */
  existingHoldOnly?: true;
  /**
   * Decides, and changes the transaction. What it throws reaches only its own caller, and its
   * changes are undone.
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
export interface PendingReply {
  reply: () => void;
  refused: boolean;
  /** It threw, and may have left the transaction half changed. */
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

/** Decides, and keeps the reply until the write is durable. */
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

/** The rows that operations read, each once, and those that they claim without reading. */
function rowsToRead(
  batch: QueuedOp[],
  looksFor: (claim: string) => boolean,
): { keys: Key[]; unread: Key[] } {
  const keys = new Map<string, Key>();
  const unread = new Map<string, Key>();
  for (const { operation: { reads, uniqueKey } } of batch) {
    for (const key of reads) keys.set(keyText(key), key);
    if (!uniqueKey) continue;
    const name = keyText(uniqueKey);
    if (unread.has(name) || keys.has(name)) continue;
    (looksFor(name) ? keys : unread).set(name, uniqueKey);
  }
  return { keys: [...keys.values()], unread: [...unread.values()] };
}
