import { type Amount, zero } from "../base/money.ts";
import { entryKey, ownEntriesPrefix, refundedKey, refundedPrefix } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { readOrNull } from "../store/scan.ts";
import type { Entry } from "./entry.ts";
import { parseStoredRefunded } from "./verify/schemas.ts";

const rowsAhead = 200;
/** How many reads a walk makes before it reads ahead. */
const readsBefore = 8;
/** How many reads the last reading ahead must have saved for another one. */
const readsSavedMin = 4;

/**
 * Reads entries for walks back along accounts of one owner. Entries that precede one in time are
 * read with it, as long as the walks need them: the entries of a busy account are near each other.
 */
export class EntryReader {
  readonly #kv: Kv;
  readonly #owner: string;
  #ahead = new Map<string, Row>();
  #reads = 0;
  #saved = readsSavedMin;

  constructor(kv: Kv, owner: string) {
    this.#kv = kv;
    this.#owner = owner;
  }

  /** Returns the rows of these ids, in their order. */
  async getMany(ids: readonly string[]): Promise<Row[]> {
    const known = ids.flatMap((id) => this.#ahead.get(id) ?? []);
    if (known.length === ids.length) {
      this.#saved++;
      return known;
    }
    this.#reads++;
    const isWorth = this.#reads > readsBefore && this.#saved >= readsSavedMin;
    if (isWorth) await this.#readAhead(ids.toSorted().at(-1) ?? "");
    const missing = ids.filter((id) => !this.#ahead.has(id));
    const rows = await this.#kv.getMany(missing.map((id) => entryKey(this.#owner, id)));
    const found = new Map(rows.map((row) => [String(row.key[2]), row]));
    const absent = (id: string) => ({ key: entryKey(this.#owner, id), value: null, version: null });
    return ids.map((id) => found.get(id) ?? this.#ahead.get(id) ?? absent(id));
  }

  async #readAhead(last: string): Promise<void> {
    const prefix = ownEntriesPrefix(this.#owner);
    const rows = await this.#kv.list({
      prefix,
      end: [...prefix, last, ""],
      reverse: true,
      limit: rowsAhead,
    });
    this.#ahead = new Map(rows.map((row) => [String(row.key[2]), row]));
    this.#saved = 0;
  }
}

const totalsMax = 500;

/**
 * The refunded amounts of entries. Few entries are refunded, so those of a project are read at
 * once.
 */
export class RefundTotals {
  readonly #kv: Kv;
  readonly #owner: string;
  /**
   * The refunded amounts by entry. Null where there are too many, or where they belong to several
   * projects.
   */
  #all: Map<string, Uint8Array | null> | null = null;

  constructor(kv: Kv, owner: string) {
    this.#kv = kv;
    this.#owner = owner;
  }

  /** Reads all totals of the owner, if it is a project and they are few. */
  async load(): Promise<void> {
    const rows = await this.#kv.list({
      prefix: refundedPrefix(this.#owner),
      limit: totalsMax + 1,
    });
    if (rows.length > totalsMax) return;
    this.#all = new Map(rows.map(({ key, value }) => [String(key[2]), value]));
  }

  /** Returns the stored total of each entry; null where there is none. */
  async of(entries: readonly (Entry | null)[]): Promise<(Uint8Array | null)[]> {
    const all = this.#all;
    const isKnown = (entry: Entry) => all !== null && entry.projectId === undefined;
    const unknown = entries.filter((entry): entry is Entry => entry !== null && !isKnown(entry));
    const read = new Map<string, Uint8Array | null>();
    if (unknown.length > 0) {
      const rows = await this.#kv.getMany(unknown.map((entry) => this.#keyOf(entry)));
      for (const [at, { id }] of unknown.entries()) read.set(id, rows[at]?.value ?? null);
    }
    return entries.map((entry) => entry && (read.get(entry.id) ?? all?.get(entry.id) ?? null));
  }

  /** Reads an entry's total again: zero where there is none, null where it cannot be read. */
  async again(entry: Entry): Promise<Amount | null> {
    const { value } = await this.#kv.get(this.#keyOf(entry));
    return value ? readOrNull(value, parseStoredRefunded) : zero;
  }

  #keyOf(entry: Entry) {
    return refundedKey(entry.projectId ?? this.#owner, entry.id);
  }
}
