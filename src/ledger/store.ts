import { fromBytes, fromBytesExactly, toBytes } from "../base/json.ts";
import { type Amount, fromDecimal } from "../base/money.ts";
import { accountKey, entryKey, holdingKey, holdingPrefix } from "../store/keys.ts";
import type { Key, Kv } from "../store/kv.ts";
import { type Account, accountLocation, type AccountRef, decodeAccount } from "./account.ts";
import type { Entry } from "./entry.ts";

/** The account as the store has it now, expired holds included. */
export async function readAccount(kv: Kv, ref: AccountRef): Promise<Account> {
  const { owner, name } = accountLocation(ref);
  return decodeAccount((await kv.get(accountKey(owner, name))).value);
}

/** One entry of a project or a person, or null. */
export async function readEntry(kv: Kv, owner: string, id: string): Promise<Entry | null> {
  const { value } = await kv.get(entryKey(owner, id));
  return value && decodeEntry(value);
}

/** Reads an entry's bytes. */
export function decodeEntry(bytes: Uint8Array): Entry {
  return fromBytesExactly<Entry>(bytes);
}

/** Reads how much of an entry has been refunded. */
export function decodeRefunded(bytes: Uint8Array): Amount {
  return fromDecimal(fromBytes<string>(bytes));
}

/** What an idempotency key stands for. */
export interface IdempotencyRecord {
  activityId: string;
  fingerprint: string;
  /** Of an entry in a wallet: the wallet's owner. */
  owner?: string;
}

/** Reads an idempotency record's bytes. */
export function decodeIdempotency(bytes: Uint8Array): IdempotencyRecord {
  return fromBytes<IdempotencyRecord>(bytes);
}

/** An idempotency record's bytes. */
export function encodeIdempotency(record: IdempotencyRecord): Uint8Array {
  return toBytes(record);
}

/** Where it is said that an account may hold money; of a wallet, for each of its connections. */
export function holdIndexKey(ref: AccountRef): Key {
  const { owner, name } = accountLocation(ref);
  return holdingKey(owner, name, ref.wallet?.connectionId ?? null);
}

/** Accounts that may hold money, from `after` on, and where to go on; null at the end. */
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
