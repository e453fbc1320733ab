import type { Key, Write } from "./kv.ts";
import { keyText } from "./batch.ts";
import { expiryKey } from "./keys.ts";
import { partOf } from "./removal.ts";

/** A kind of rows that are kept for a time. */
export interface ExpiringKind {
  /** All rows of this kind; its first part names the kind. */
  prefix: Key;
  /** When a row ends, in milliseconds since 1970, by its value; Infinity for not yet. */
  endsAt(value: Uint8Array): number;
}

type StoredRow = Write["sets"][number];

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
  return Number.isFinite(endsAt) ? expiryKey(partOf(keyText(key)), endsAt, key) : null;
}
