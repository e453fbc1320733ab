import type { Clock } from "../base/clock.ts";
import type { KvLimits } from "../store/kv.ts";
import type { Account } from "./account.ts";

/** An account as this process last read or wrote it. */
interface CachedAccount {
  account: Account;
  version: string | null;
}

/** Accounts that need not be read again, and what is known of other processes that write them. */
interface AccountCache {
  /** Null where the account has to be read. */
  find(name: string): CachedAccount | null;
  /**
   * The account was written. `believed`: its cached version was used, without reading it before.
   */
  onWritten(name: string, cached: CachedAccount, believed: boolean): void;
  /** The account was read, at this version. */
  onRead(name: string, version: string | null): void;
  /** A write was refused: another process has written the account. */
  onRefused(name: string): void;
  /** The account was just read for this process's turn to write it. */
  onTurn(name: string, cached: CachedAccount): void;
  forget(name: string): void;
}

const accountsMax = 20_000;
/** How long an account is always believed after a write: from a hold to a quick settle. */
const believedMs = 50;
/**
 * After another process has written an account, it is read each time, until so many reads found no
 * change.
 */
const unchangedReadsMin = 8;
/**
 * No account is believed for longer than `believedMs` where others have changed more than this
 * share of the accounts of late: a refused write costs two round trips more, a read one.
 */
const changedShareMax = 0.2;
/** About how many accounts the share of changed ones is taken over. */
const shareOver = 64;

interface Known extends CachedAccount {
  /** When the account was last read or written here, by the clock's `elapsed`. */
  at: number;
}

interface Meeting {
  unchangedReads: number;
}

/**
 * Creates a cache of accounts by name. In a store that is not shared, no other process writes them.
 */
export function createAccountCache(
  clock: Pick<Clock, "elapsed">,
  { isShared }: Pick<KvLimits, "isShared">,
): AccountCache {
  return isShared ? new SharedAccounts(clock.elapsed) : new OwnAccounts();
}

/** Evicts the oldest first: reordering the map at each operation would cost more. */
function evict(map: Map<string, unknown>): void {
  if (map.size <= accountsMax) return;
  const [oldest = ""] = map.keys();
  map.delete(oldest);
}

/** Accounts that no other process writes. */
class OwnAccounts implements AccountCache {
  readonly #known = new Map<string, CachedAccount>();

  find(name: string): CachedAccount | null {
    return this.#known.get(name) ?? null;
  }

  onWritten(name: string, { account, version }: CachedAccount): void {
    // A closed account is reopened by a write that this queue does not make.
    if (account.closed) return this.forget(name);
    const cached = this.#known.get(name);
    if (cached) return void Object.assign(cached, { account, version });
    this.#known.set(name, { account, version });
    evict(this.#known);
  }

  onRead(): void {}

  onRefused(name: string): void {
    this.forget(name);
  }

  forget(name: string): void {
    this.#known.delete(name);
  }

  onTurn(): void {}
}

/** Accounts that other processes write too. */
class SharedAccounts implements AccountCache {
  readonly #known = new Map<string, Known>();
  /** The accounts that another process was found to write. */
  readonly #met = new Map<string, Meeting>();
  readonly #elapsed: () => number;
  /**
   * The share of accounts that other processes had changed when this one next read or wrote them.
   */
  #changedShare = 0;

  constructor(elapsed: () => number) {
    this.#elapsed = elapsed;
  }

  find(name: string): CachedAccount | null {
    const cached = this.#known.get(name);
    if (!cached) return null;
    if (this.#elapsed() - cached.at <= believedMs) return cached;
    return this.#changedShare > changedShareMax || this.#met.has(name) ? null : cached;
  }

  onWritten(name: string, { account, version }: CachedAccount, believed: boolean): void {
    const before = this.#known.get(name);
    const at = this.#elapsed();
    if (believed && before && at - before.at > believedMs) this.#note(false);
    if (account.closed) return this.forget(name);
    this.#known.set(name, { account, version, at });
    evict(this.#known);
  }

  onRead(name: string, version: string | null): void {
    const cached = this.#known.get(name);
    if (!cached) return;
    const isChanged = cached.version !== version;
    this.#note(isChanged);
    if (isChanged) this.#known.delete(name);
    const meeting = this.#met.get(name);
    if (!meeting) return;
    meeting.unchangedReads = isChanged ? 0 : meeting.unchangedReads + 1;
    if (meeting.unchangedReads >= unchangedReadsMin) this.#met.delete(name);
  }

  onRefused(name: string): void {
    this.forget(name);
    this.#note(true);
    this.#met.delete(name);
    this.#met.set(name, { unchangedReads: 0 });
    evict(this.#met);
  }

  forget(name: string): void {
    this.#known.delete(name);
  }

  onTurn(name: string, { account, version }: CachedAccount): void {
    this.onRead(name, version);
    if (!account.closed) this.#known.set(name, { account, version, at: this.#elapsed() });
  }

  #note(isChanged: boolean): void {
    this.#changedShare += ((isChanged ? 1 : 0) - this.#changedShare) / shareOver;
  }
}
