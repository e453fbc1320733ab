import type { Key, Kv, Row, Write } from "./kv.ts";
import { keyText } from "./batch.ts";
import type { Committer } from "./commit.ts";
import { commitUnlessMoved } from "./erase.ts";
import { expiryKey, expiryPrefix } from "./keys.ts";
import { readOrNull } from "./scan.ts";

/** A kind of rows that are kept for a time. */
export interface ExpiringKind {
  /** All rows of this kind; its first part names the kind. */
  prefix: Key;
  /** When a row ends, in milliseconds since 1970, by its value; Infinity for not yet. */
  endsAt(value: Uint8Array): number;
}

type StoredRow = Write["sets"][number];

/** More parts than processes that ever share a store's upkeep. */
const parts = 8;

/** Returns a row and the row that says when it ends: both belong in one write. */
export function withExpiry(kind: ExpiringKind, row: StoredRow): StoredRow[] {
  const key = expiryKeyOf(kind, row);
  return key ? [row, { key, value: new Uint8Array() }] : [row];
}

/** Returns the keys of a row and of the row that says when it ends: both are deleted together. */
export function keysWithExpiry(kind: ExpiringKind, row: StoredRow): Key[] {
  const key = expiryKeyOf(kind, row);
  return key ? [row.key, key] : [row.key];
}

/**
 * As `withExpiry`, for a row that replaces the one with the value `before`: also returns the key
 * that said when that one ends, to be deleted. For rows whose key names a user: else that key would
 * outlive the erasure of the row.
 */
export function replacingExpiry(
  kind: ExpiringKind,
  row: StoredRow,
  before: Uint8Array | null,
): Pick<Write, "sets" | "deletes"> {
  const sets = withExpiry(kind, row);
  const old = before && expiryKeyOf(kind, { key: row.key, value: before });
  const isSame = old && sets.some(({ key }) => keyText(key) === keyText(old));
  return { sets, deletes: old && !isSame ? [old] : [] };
}

/** Returns the key of the row that says when a row ends; null where it does not end yet. */
export function expiryKeyOf(kind: ExpiringKind, { key, value }: StoredRow): Key | null {
  const endsAt = kind.endsAt(value);
  return Number.isFinite(endsAt) ? expiryKey(partOf(key), endsAt, key) : null;
}

/** Always the same part for the same key. */
function partOf(key: Key): number {
  const text = keyText(key);
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = (31 * hash + text.charCodeAt(at)) % 65_521;
  return hash % parts;
}

const rowsPerRead = 100;

/**
 * Removes the rows that have ended by `now`, oldest first, until there are none or it is late. Rows
 * that have not ended are not read, except those that were written again with a later end.
 */
export async function removeExpired(
  { kv, committer }: { kv: Kv; committer: Committer },
  { kinds, now, isLate }: { kinds: readonly ExpiringKind[]; now: number; isLate: () => boolean },
): Promise<void> {
  const byName = new Map(kinds.map((kind) => [kind.prefix[0], kind]));

  async function removePart(part: number): Promise<void> {
    const prefix = expiryPrefix(part);
    let start: Key = prefix;
    for (let isMore = true; isMore && !isLate();) {
      const end = [...prefix, now + 1];
      const ends = await kv.list({ prefix, start, end, limit: rowsPerRead });
      const rows = await kv.getMany(ends.map(({ key }) => rowKeyOf(key)));
      await Promise.all(ends.map((end, at) => removeOne(end, rows[at])));
      start = [...(ends.at(-1)?.key ?? prefix), ""];
      isMore = ends.length === rowsPerRead;
    }
  }

  /** What has changed since it was read stays for the next time. */
  async function removeOne(end: Row, row: Row | undefined): Promise<void> {
    const kind = byName.get(row?.key[0] ?? "");
    // Written by a newer version, which removes it itself.
    if (!kind || !row) return;
    const endsAt = row.value ? readOrNull(row.value, kind.endsAt) : Infinity;
    if (endsAt === null) return;
    const hasEnded = endsAt <= now;
    const deletes = hasEnded ? [row.key, end.key] : [end.key];
    await commitUnlessMoved(committer, hasEnded ? row : end, { sets: [], deletes });
  }

  const all = Array.from({ length: parts }, (_, part) => part);
  const workers = Array.from({ length: kv.limits.inFlight }, async () => {
    for (let part = all.shift(); part !== undefined; part = all.shift()) await removePart(part);
  });
  await Promise.all(workers);
}

/** The key of the row that ends. */
function rowKeyOf(expiry: Key): Key {
  return expiry.slice(3);
}
