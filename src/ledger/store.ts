import { fromBytes, fromBytesExactly, toBytes } from "../base/json.ts";
import { accountKey, entryKey, holdingPrefix } from "../store/keys.ts";
import type { Key, Kv } from "../store/kv.ts";
import { type Account, type AccountRef, decodeAccount } from "./account.ts";
import type { Entry } from "./entry.ts";

/** The account as the store has it now, expired holds included. */
export async function readAccount(kv: Kv, { projectId, user }: AccountRef): Promise<Account> {
  return decodeAccount((await kv.get(accountKey(projectId, user))).value);
}

/** One entry of a project, or null. */
export async function readEntry(kv: Kv, projectId: string, id: string): Promise<Entry | null> {
  const { value } = await kv.get(entryKey(projectId, id));
  return value && fromBytesExactly<Entry>(value);
}

/** What an idempotency key stands for. */
export interface IdempotencyRecord {
  activityId: string;
  fingerprint: string;
}

/** Reads an idempotency record's bytes. */
export function decodeIdempotency(bytes: Uint8Array): IdempotencyRecord {
  return fromBytes<IdempotencyRecord>(bytes);
}

/** An idempotency record's bytes. */
export function encodeIdempotency(record: IdempotencyRecord): Uint8Array {
  return toBytes(record);
}

/** Accounts that may hold money, from `after` on, and where to go on; null at the end. */
export async function listHolding(
  kv: Kv,
  after: Key | null,
  limit: number,
): Promise<{ refs: AccountRef[]; next: Key | null }> {
  const start = after ? { start: after } : {};
  const rows = await kv.list({ prefix: holdingPrefix, ...start, limit: limit + 1 });
  const refs = rows.slice(0, limit).map(({ key }) => ({
    projectId: String(key[1]),
    user: String(key[2]),
  }));
  return { refs, next: rows[limit]?.key ?? null };
}
