import { ApiError, storeUnavailable } from "../base/errors.ts";
import { storeDeadlineMs } from "../base/limits.ts";

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

/**
 * A plain atomic write: everything when every checked key still has its version, otherwise nothing.
 */
export interface Write {
  checks: { key: Key; version: string | null }[];
  sets: { key: Key; value: Uint8Array }[];
  deletes: Key[];
  /** Applied if, and only if, the rest is written. */
  additions?: Increment[];
}

/** Returns a write that changes nothing yet. */
export function emptyWrite(): Write {
  return { checks: [], sets: [], deletes: [] };
}

/** The part of a key-value store that Farebox needs. Any store that implements it can be used. */
export interface Kv {
  get(key: Key): Promise<Row>;
  /** Returns rows in the requested order, in as few round trips as the store allows. */
  getMany(keys: readonly Key[]): Promise<Row[]>;
  list(options: ListOptions): Promise<Row[]>;
  /**
   * Returns the new version, or null when a check failed. When it throws, the outcome is unknown.
   */
  atomic(write: Write): Promise<string | null>;
  close(): void;
}

/** The most keys in one `getMany` of Deno KV. */
export const readKeysMax = 10;

/**
 * Waits for `work` for a limited time, then throws what `late` returns; the work itself may still
 * complete.
 */
export type Bound = <T>(work: Promise<T>, deadlineMs: number, late: () => Error) => Promise<T>;

/** Adapts Deno KV: a local file or KV Connect. */
export function denoKv(kv: Deno.Kv): Kv {
  return {
    get: async (key) => toRow(await kv.get<Uint8Array>(key)),
    async getMany(keys) {
      const reads: Promise<Deno.KvEntryMaybe<Uint8Array>[]>[] = [];
      for (let i = 0; i < keys.length; i += readKeysMax) {
        reads.push(kv.getMany<Uint8Array[]>(keys.slice(i, i + readKeysMax)));
      }
      return (await Promise.all(reads)).flat().map(toRow);
    },
    async list(options) {
      const rows = kv.list<Uint8Array>(selector(options), {
        limit: options.limit,
        reverse: options.reverse ?? false,
      });
      return (await Array.fromAsync(rows)).map(toRow);
    },
    async atomic(write) {
      const operation = kv.atomic();
      for (const { key, version } of write.checks) operation.check({ key, versionstamp: version });
      for (const { key, value } of write.sets) operation.set(key, value);
      for (const key of write.deletes) operation.delete(key);
      const result = await operation.commit();
      return result.ok ? result.versionstamp : null;
    },
    close: () => kv.close(),
  };
}

/**
 * Adds deadlines to a store, and turns failed reads into `ApiError` 503. The committer has to find
 * out what a failed write means, so its error is passed on.
 */
export function guardKv(kv: Kv, bound: Bound): Kv {
  const late = () => storeUnavailable(`no response within ${storeDeadlineMs} ms`);
  const inTime = <T>(work: Promise<T>): Promise<T> => bound(work, storeDeadlineMs, late);
  const read = <T>(work: Promise<T>): Promise<T> =>
    inTime(work).catch((error) => {
      throw asStoreFault(error);
    });
  return {
    get: (key) => read(kv.get(key)),
    getMany: (keys) => read(kv.getMany(keys)),
    list: (options) => read(kv.list(options)),
    atomic: (write) => inTime(kv.atomic(write)),
    close: () => kv.close(),
  };
}

/** Returns a store's error as the 503 that callers see; its own message goes to the log. */
export function asStoreFault(error: unknown): ApiError {
  return error instanceof ApiError ? error : storeUnavailable(error);
}

function toRow(entry: Deno.KvEntryMaybe<Uint8Array>): Row {
  return { key: entry.key as Key, value: entry.value, version: entry.versionstamp };
}

function selector({ prefix, start, end }: ListOptions): Deno.KvListSelector {
  if (start && end) return { start, end };
  if (start) return { prefix, start };
  if (end) return { prefix, end };
  return { prefix };
}
