import { fromBytes, fromBytesExactly, toBytes } from "../base/json.ts";
import { type Amount, fromDecimal } from "../base/money.ts";
import { accountKey, entryKey, holdingKey, holdingPrefix } from "../store/keys.ts";
import type { Key, Kv } from "../store/kv.ts";
import { type Account, accountLocation, type AccountRef, decodeAccount } from "./account.ts";
import type { Entry } from "./entry.ts";

/** Reads the account as it is stored, including expired holds. */
export async function readAccount(kv: Kv, ref: AccountRef): Promise<Account> {
  const { owner, name } = accountLocation(ref);
  return decodeAccount((await kv.get(accountKey(owner, name))).value);
}

/** Reads an entry of a project or a person, or null. */
export async function readEntry(kv: Kv, owner: string, id: string): Promise<Entry | null> {
  const { value } = await kv.get(entryKey(owner, id));
  return value && decodeEntry(value);
}

/** Decodes an entry. */
export function decodeEntry(bytes: Uint8Array): Entry {
  return fromBytesExactly<Entry>(bytes);
}

/** Decodes how much of an entry has been refunded. */
export function decodeRefunded(bytes: Uint8Array): Amount {
  return fromDecimal(fromBytes<string>(bytes));
}

/** The entry that an idempotency key stands for, and the request that created it. */
export interface IdempotencyRecord {
  activityId: string;
  fingerprint: string;
  /** For an entry in a wallet: the wallet's owner. */
  owner?: string;
}

/** The fingerprint of an erased user's request, which contained the user's id as a hash. */
export const forgottenFingerprint = "forgotten";

/** Decodes an idempotency record. */
export function decodeIdempotency(bytes: Uint8Array): IdempotencyRecord {
  return fromBytes<IdempotencyRecord>(bytes);
}

/** Encodes an idempotency record. */
export function encodeIdempotency(record: IdempotencyRecord): Uint8Array {
  return toBytes(record);
}

/**
 * Returns the key of the row that marks an account as possibly holding money; one row for each
 * connection of a wallet.
 */
export function holdIndexKey(ref: AccountRef): Key {
  const { owner, name } = accountLocation(ref);
  return holdingKey(owner, name, ref.wallet?.connectionId ?? null);
}

/**
 * Lists a page of the accounts in the hold index, after `after`, and where the next page starts;
 * null at the end.
 */
export async function listHoldIndex(
  kv: Kv,
  after: Key | null,
  limit: number,
): Promise<{ refs: AccountRef[]; next: Key | null }> {
  const start = after ? { start: after } : {};
  const rows = await kv.list({ prefix: holdingPrefix, ...start, limit: limit + 1 });
  const refs = rows.slice(0, limit).flatMap(({ value }) =>
    value ? [fromBytes<{ ref: AccountRef }>(value).ref] : []
  );
  return { refs, next: rows[limit]?.key ?? null };
}
