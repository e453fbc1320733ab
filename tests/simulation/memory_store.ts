import { encodeKey } from "../../src/store/key_bytes.ts";
import type { Key, Kv, ListOptions, Row, Write } from "../../src/store/kv.ts";

/** The limits of one atomic write and one key, as in Deno KV 2.9; in bytes or counts. */
interface StoreLimits {
  checks: number;
  /** How many writes a process may have under way at once. */
  inFlight: number;
  /** Whether a refused write returns which checks failed, as PostgreSQL does. */
  namesFailed: boolean;
  /** Whether several processes use it at once. */
  isShared: boolean;
  mutations: number;
  valueBytes: number;
  totalBytes: number;
  totalKeyBytes: number;
  writeKeyBytes: number;
  readKeyBytes: number;
}

/** The limits of a local file of Deno KV. */
const denoLimits: StoreLimits = {
  checks: 100,
  inFlight: 1,
  namesFailed: false,
  isShared: true,
  mutations: 1_000,
  valueBytes: 65_536,
  totalBytes: 819_200,
  totalKeyBytes: 81_920,
  writeKeyBytes: 2_048,
  readKeyBytes: 2_049,
};

interface Stored {
  key: Key;
  value: Uint8Array;
  version: string;
}

/**
 * A store in plain JavaScript that behaves as Deno KV does behind our `Kv`: the same order of keys,
 * versions, checks and limits. Its own calls are synchronous, so that a simulation decides when
 * each happens; `kv` is the same as a `Kv`.
 */
export class MemoryStore {
  readonly limits: StoreLimits;
  readonly kv: Kv;
  /** Called with every write that lands, before its caller gets the result. */
  onLanded: (write: Write, version: string) => void = () => {};
  readonly #rows = new Map<string, Stored>();
  /** The encoded keys, in order. */
  #order: string[] = [];
  #commits = 0;
  #closed = false;

  constructor(limits: Partial<StoreLimits> = {}) {
    this.limits = { ...denoLimits, ...limits };
    const { checks, inFlight, namesFailed, isShared } = this.limits;
    this.kv = {
      limits: { checks, readKeys: 10, inFlight, isShared },
      get: async (key) => this.read(key),
      getMany: async (keys) => keys.map((key) => this.read(key)),
      list: async (options) => this.list(options),
      atomic: async (write) => this.commit(write),
      ...(namesFailed
        ? { atomicOrFailed: (write) => Promise.resolve(this.commitOrFailed(write)) }
        : {}),
      close: () => void (this.#closed = true),
    };
  }

  get size(): number {
    return this.#order.length;
  }

  read(key: Key): Row {
    this.#mustBeOpen();
    // Deno KV reads a key as the range that ends one byte after it.
    const encoded = readable(key, this.limits.readKeyBytes - 1);
    const row = this.#rows.get(encoded);
    if (!row) return { key, value: null, version: null };
    return { key: row.key, value: copyOf(row.value), version: row.version };
  }

  list({ prefix, start, end, reverse = false, limit }: ListOptions): Row[] {
    this.#mustBeOpen();
    if (!Number.isInteger(limit) || limit < 1) {
      throw new Error(`Limit must be a positive integer: received ${limit}`);
    }
    const [from, until] = this.#range({ prefix, start, end });
    const first = this.#position(from);
    const last = this.#position(until);
    const encoded = reverse
      ? this.#order.slice(Math.max(first, last - limit), last).reverse()
      : this.#order.slice(first, Math.min(last, first + limit));
    const rows: Row[] = [];
    for (const text of encoded) {
      const row = this.#rows.get(text);
      if (row) rows.push({ key: row.key, value: copyOf(row.value), version: row.version });
    }
    return rows;
  }

  /** Writes everything, or returns null when a check fails; throws when it exceeds a limit. */
  commit(write: Write): string | null {
    const outcome = this.commitOrFailed(write);
    return typeof outcome === "string" ? outcome : null;
  }

  /** The same, but returns which checks failed. */
  commitOrFailed(write: Write): string | readonly number[] {
    this.#mustBeOpen();
    const { checks, sets, deletes } = this.#encoded(write);
    const failed = checks.flatMap(({ encoded, version }, at) =>
      (this.#rows.get(encoded)?.version ?? null) === version ? [] : [at]
    );
    if (failed.length > 0) return failed;
    this.#commits++;
    const version = this.#commits.toString(16).padStart(16, "0") + "0000";
    for (const { encoded, key, value } of sets) {
      if (!this.#rows.has(encoded)) this.#order.splice(this.#position(encoded), 0, encoded);
      this.#rows.set(encoded, { key: [...key], value: copyOf(value), version });
    }
    for (const encoded of deletes) {
      if (this.#rows.delete(encoded)) this.#order.splice(this.#position(encoded), 1);
    }
    this.onLanded(write, version);
    return version;
  }

  /** Returns where a key is, or would be inserted. */
  #position(encoded: string): number {
    let low = 0;
    let high = this.#order.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#order[middle] ?? "") < encoded) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The selector's bounds; what `denoKv` passes on decides, so both ends omit the prefix. */
  #range({ prefix, start, end }: {
    prefix: Key;
    start: Key | undefined;
    end: Key | undefined;
  }): [string, string] {
    const within = encodeKey(prefix);
    const most = this.limits.readKeyBytes;
    const from = start ? readable(start, most) : `${within}\x00`;
    const until = end ? readable(end, most) : `${within}\xff`;
    if (start && end) {
      if (from > until) throw new TypeError("Start key is greater than end key");
      return [from, until];
    }
    if (start && !from.startsWith(within)) {
      throw new TypeError("Start key is not in the keyspace defined by prefix");
    }
    if (end && !until.startsWith(within)) {
      throw new TypeError("End key is not in the keyspace defined by prefix");
    }
    return [from, until];
  }

  #mustBeOpen(): void {
    if (this.#closed) throw new Deno.errors.BadResource("Bad resource ID");
  }

  /** Returns the same write with its keys encoded; throws when it exceeds a limit. */
  #encoded(write: Write) {
    const { limits } = this;
    if (write.checks.length > limits.checks) {
      throw new TypeError(`Too many checks (max ${limits.checks})`);
    }
    if (write.sets.length + write.deletes.length > limits.mutations) {
      throw new TypeError(`Too many mutations (max ${limits.mutations})`);
    }
    let total = 0;
    let keys = 0;
    const checks = write.checks.map(({ key, version }) => {
      const encoded = readable(key, limits.readKeyBytes);
      total += encoded.length;
      return { encoded, version };
    });
    const sets = write.sets.map(({ key, value }) => {
      const encoded = writable(key, limits.writeKeyBytes);
      if (value.length > limits.valueBytes) {
        throw new TypeError(`Value too large (max ${limits.valueBytes} bytes)`);
      }
      keys += encoded.length;
      total += 2 * encoded.length + value.length;
      return { encoded, key, value };
    });
    const deletes = write.deletes.map((key) => {
      const encoded = writable(key, limits.writeKeyBytes);
      total += encoded.length;
      return encoded;
    });
    if (total > limits.totalBytes) {
      throw new TypeError(`Total mutation size too large (max ${limits.totalBytes} bytes)`);
    }
    if (keys > limits.totalKeyBytes) {
      throw new TypeError(`Total key size too large (max ${limits.totalKeyBytes} bytes)`);
    }
    return { checks, sets, deletes };
  }
}

// A separate buffer for each value would cost more than the rest of a read.
const poolBytes = 64 * 1024;
const pooledMax = 4 * 1024;
let pool = new Uint8Array(poolBytes);
let used = 0;

function copyOf(bytes: Uint8Array): Uint8Array {
  const { length } = bytes;
  if (length > pooledMax) return bytes.slice();
  if (used + length > poolBytes) {
    pool = new Uint8Array(poolBytes);
    used = 0;
  }
  const copy = pool.subarray(used, used += length);
  copy.set(bytes);
  return copy;
}

function readable(key: Key, bytesMax: number): string {
  const encoded = encodeKey(key);
  if (encoded.length <= bytesMax) return encoded;
  throw new TypeError(`Key too large for read (max ${denoLimits.readKeyBytes} bytes)`);
}

function writable(key: Key, bytesMax: number): string {
  if (key.length === 0) throw new TypeError("key cannot be empty");
  const encoded = encodeKey(key);
  if (encoded.length <= bytesMax) return encoded;
  throw new TypeError(`Key too large for write (max ${bytesMax} bytes)`);
}
