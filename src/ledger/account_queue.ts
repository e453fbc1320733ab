import { ApiError } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import { keyText } from "../store/batch.ts";
import { backOff } from "../store/backoff.ts";
import { accountKey, authorizationKey } from "../store/keys.ts";
import type { Key, Row } from "../store/kv.ts";
import type { TopUsers } from "../summaries/top_users.ts";
import {
  type Account,
  accountLocation,
  type AccountRef,
  decodeAccount,
  requireNotClosed,
} from "./account.ts";
import { AccountTx } from "./account_tx.ts";

/** The one way that money moves: operations of one account, one after the other. */
export interface AccountQueue {
  /** Resolves once what the operation decided is durable. Throws 503 when it cannot be. */
  run<T>(ref: AccountRef, operation: AccountOp<T>): Promise<T>;
  /** Resolves after the next write to this account from here, or when `signal` aborts. */
  changed(ref: AccountRef, signal: AbortSignal): Promise<void>;
}

/**
 * Operations on one account, for one project's user, that came while its last write was under way.
 */
interface Lane {
  ref: AccountRef;
  waiting: QueuedOp[];
}

const attemptsMax = 20;
const cachedAccountsMax = 20_000;

/**
 * Combines what waits for one account into one write (one read, many operations, one check), so a
 * hot user costs one commit for many requests and never conflicts with itself. The check on the
 * account's version is the truth: another process that wrote in between makes it read again.
 */
export function createAccountQueue(
  deps: Pick<Deps, "kv" | "committer" | "clock" | "id" | "config" | "randomBytes" | "metrics">,
  services: { projectCache: ProjectCache; topUsers: Pick<TopUsers, "observe"> },
): AccountQueue {
  const lanes = new Map<string, Lane>();
  const cache = new Map<string, { account: Account; version: string | null }>();
  const claims = createSeenKeys();
  const listeners = new Map<string, Set<() => void>>();
  const readsMax = deps.config.kvChecksMax - 4;

  async function drain(laneName: string, lane: Lane): Promise<void> {
    const name = accountNameOf(lane.ref);
    while (lane.waiting.length > 0) {
      const batch = takeBatch(lane.waiting, readsMax);
      await settleBatch(name, lane.ref, batch).catch((error) =>
        batch.forEach((waiting) => waiting.reject(error))
      );
    }
    lanes.delete(laneName);
  }

  async function settleBatch(name: string, ref: AccountRef, batch: QueuedOp[]): Promise<void> {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      if (attempt > 2) await backOff(deps, attempt);
      const { tx, fresh, unread } = await openTx(name, ref, batch, attempt);
      const decisions: PendingReply[] = [];
      for (const waiting of batch) {
        decisions.push(waiting.decide(tx));
        if (tx.isFull) break;
      }
      if (!fresh && decisions.some(({ refused }) => refused)) {
        cache.delete(name);
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
        remember(name, tx.account, version);
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
    const known = cache.get(name);
    // What is decided without a write is believed on a fresh record: then everything was read.
    const looksFor = (claim: string) => !claims.isNew(claim) || !known || attempt > 0;
    const { keys, unread } = rowsToRead(batch, looksFor);
    if (ref.wallet) keys.push(authorizationKey(ref.projectId, ref.user));
    const place = accountLocation(ref);
    const wanted = known ? keys : [accountKey(place.owner, place.name), ...keys];
    const rows: Row[] = wanted.length > 0 ? await deps.kv.getMany(wanted) : [];
    const { account, version } = known ?? readRow(rows.shift());
    rows.push(...unread.map((key) => ({ key, value: null, version: null })));
    requireNotClosed(account);
    const snapshot = attempt === 0
      ? await services.projectCache.current(ref.projectId)
      : await services.projectCache.refresh(ref.projectId);
    const { id, clock } = deps;
    const isNew = version === null && !batch.every(({ operation }) => operation.existingHoldOnly);
    const tx = new AccountTx({
      ref,
      account,
      version,
      isNew,
      snapshot,
      rows,
      now: clock.now(),
      id,
    });
    return { tx, fresh: !known, unread };
  }

  async function commitTx(name: string, tx: AccountTx): Promise<string | null> {
    try {
      const version = await deps.committer.commit(tx.finish());
      if (version === null) cache.delete(name);
      return version;
    } catch (error) {
      cache.delete(name);
      throw error;
    }
  }

  /** The one that came first goes first, which spares the map a change for each operation. */
  function remember(name: string, account: Account, version: string): void {
    // One that is closed is opened again by a write that is not made here.
    if (account.closed) return void cache.delete(name);
    const known = cache.get(name);
    if (known) return void Object.assign(known, { account, version });
    cache.set(name, { account, version });
    if (cache.size <= cachedAccountsMax) return;
    const [oldest = ""] = cache.keys();
    cache.delete(oldest);
  }

  function notify(name: string): void {
    const waiting = listeners.get(name);
    listeners.delete(name);
    waiting?.forEach((wake) => wake());
  }

  return {
    run<T>(ref: AccountRef, operation: AccountOp<T>): Promise<T> {
      // A wallet has a lane for each connection: an operation is one of a project.
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

/** What tells accounts apart. */
function accountNameOf(ref: AccountRef): string {
  const { owner, name } = accountLocation(ref);
  return keyText([owner, name]);
}

/** 503: others kept changing the account, and nothing was changed. */
export function accountContended(): ApiError {
  return new ApiError(503, {
    message: "The account is written to from too many places at once. Try again.",
    type: "service_unavailable_error",
    code: "account_contended",
    headers: { "retry-after": "1" },
  });
}

/** Which rows a write need not look for before it makes them. */
export interface SeenKeys {
  /** Whether nobody has come here with it before, as far as is remembered. Remembers it. */
  isNew(name: string): boolean;
  /** One that was new here was there already, as after a restart or beside another process. */
  onCollision(): void;
}

/** Names that are remembered at least; at most twice as many are. */
const seenKeysMin = 10_000;
/** A write that finds such a row makes all of its batch go singly: that must be rare. */
const cautiousReadsAfterCollision = 10_000;

/**
 * A caller that repeats a request does so soon, and mostly to the process that it asked before.
 * What was not seen here is new until a write's check says otherwise, which spares a read for each.
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

/** What an operation came to. A refusal is only believed on a record that was read afresh. */
export interface OpResult<T> {
  value: T;
  refused?: boolean;
}

/** One thing to do to one account. `apply` may run several times; only the last run is written. */
export interface AccountOp<T> {
  /** Rows that it looks at besides the account; the commit checks them too. */
  reads: readonly Key[];
  /** A row that it makes unless it is there: read only where that is likely, but checked always. */
  uniqueKey?: Key | null;
  /** About how much it writes, in bytes. */
  estimatedBytes: number;
  /**
   * It is about holds of before: where no account is, it is for nobody new, and brings no trial.
   */
  existingHoldOnly?: true;
  /** Decides and alters the draft. What it throws reaches its own caller alone, and undoes it. */
  apply(tx: AccountTx): OpResult<T>;
}

/** An operation that waits for its turn. */
export interface QueuedOp {
  operation: Omit<AccountOp<unknown>, "apply">;
  decide(tx: AccountTx): PendingReply;
  reject: (error: unknown) => void;
}

/** An operation's decision, to be told once it is durable. */
export interface PendingReply {
  reply: () => void;
  refused: boolean;
  /** It threw, and may have left the draft half changed. */
  failed: boolean;
}

const opsPerWriteMax = 64;
const bytesPerWriteMax = 256 * 1024;

/** As many operations as one write should carry, in order; at least one. */
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

/** Decides, and keeps what to tell until that is durable. */
export function createDecider<T>(
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

/** The rows that operations look at, each once; and those that they claim and need not look at. */
export function rowsToRead(
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
