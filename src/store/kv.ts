import { ApiError, storeUnavailable } from "../base/errors.ts";
import { storeDeadlineMs, writeDeadlineMs } from "../base/limits.ts";
import type { Amount } from "../base/money.ts";

/** A key: strings, or a number where numeric order is needed. */
export type Key = readonly (string | number)[];

/** A record as read: its bytes and the version that a check names; both null when absent. */
export interface Row {
  key: Key;
  value: Uint8Array | null;
  version: string | null;
}

/** Which rows a listing returns: those under `prefix`, from `start` on (inclusive), up to `end`. */
export interface ListOptions {
  prefix: Key;
  start?: Key;
  end?: Key;
  reverse?: boolean;
  limit: number;
}

/** An increment to one field of a stored sum, a vector that is added position by position. */
export interface Increment {
  key: Key;
  field: string;
  values: readonly bigint[];
}

/** How a write changes a budget: see `budgets.ts`. */
export interface BudgetChange {
  key: Key;
  /** The changes of the spent and the held amount: below zero where a hold ends. */
  spent: Amount;
  held: Amount;
  /**
   * The most that may be spent and held after the write, which is refused beyond it unless it adds
   * nothing. Null where the added amount was promised before.
   */
  cap: Amount | null;
}

/**
 * A plain atomic write: everything when every checked key still has its version, otherwise nothing.
 */
export interface Write {
  checks: { key: Key; version: string | null }[];
  sets: { key: Key; value: Uint8Array }[];
  deletes: Key[];
  /** Sums to add to, if and only if the rest is written. */
  additions?: Increment[];
  /**
   * Changes of budgets, written if and only if the rest is. Beyond a cap the write is refused, as
   * by a failed check.
   */
  budgets?: readonly BudgetChange[];
}

/** Returns a write that changes nothing yet. */
export function emptyWrite(): Write {
  return { checks: [], sets: [], deletes: [] };
}

/** The limits of a store: how much it allows, and how much is worth asking of it at once. */
export interface KvLimits {
  /** The most checks in one atomic write. */
  checks: number;
  /** The most keys that one read takes. */
  readKeys: number;
  /** How many writes, and how many reads, are worth having under way at once. */
  inFlight: number;
  /** Whether other processes may use the same store. */
  isShared: boolean;
}

/** The part of a key-value store that Farebox needs. Any store that implements it can be used. */
export interface Kv {
  readonly limits: KvLimits;
  get(key: Key): Promise<Row>;
  /** Returns rows in the requested order, in as few round trips as the store allows. */
  getMany(keys: readonly Key[]): Promise<Row[]>;
  list(options: ListOptions): Promise<Row[]>;
  /**
   * Returns the new version, or null when a check failed. When it throws, the outcome is unknown.
   */
  atomic(write: Write): Promise<string | null>;
  /**
   * As `atomic`; when checks failed, returns their positions in `write.checks` instead of null.
   * Absent where the store does not name them.
   */
  atomicOrFailed?(write: Write): Promise<string | readonly number[]>;
  close(): void;
}

/**
 * Waits for `work` for a limited time, then throws the error that `late` returns; the work itself
 * may still complete.
 */
export type Bound = <T>(work: Promise<T>, deadlineMs: number, late: () => Error) => Promise<T>;

/**
 * Adds deadlines to a store, and turns failed reads into `ApiError` 503. The committer has to find
 * out what a failed write means, so its error is passed on.
 */
export function guardKv(kv: Kv, bound: Bound): Kv {
  const inTime = <T>(work: Promise<T>, ms: number): Promise<T> =>
    bound(work, ms, () => storeUnavailable(`no response within ${ms} ms`));
  const read = <T>(work: Promise<T>): Promise<T> =>
    inTime(work, storeDeadlineMs).catch((error) => {
      throw asStoreFault(error);
    });
  const { atomicOrFailed } = kv;
  return {
    limits: kv.limits,
    get: (key) => read(kv.get(key)),
    getMany: (keys) => read(kv.getMany(keys)),
    list: (options) => read(kv.list(options)),
    atomic: (write) => inTime(kv.atomic(write), writeDeadlineMs),
    ...(atomicOrFailed
      ? { atomicOrFailed: (write) => inTime(atomicOrFailed(write), writeDeadlineMs) }
      : {}),
    close: () => kv.close(),
  };
}

/** Returns a store's error as the 503 that callers see; its own message goes to the log. */
export function asStoreFault(error: unknown): ApiError {
  return error instanceof ApiError ? error : storeUnavailable(error);
}
