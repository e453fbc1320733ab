import { fromBytes, toBytes } from "../base/json.ts";
import { walletJoinIntoKey, walletJoinKey, walletJoinsIntoPrefix } from "../store/keys.ts";
import { emptyWrite, type Kv, type Write } from "../store/kv.ts";

/** Why one side of a join agrees: its owner confirmed, or the operator said why nobody can. */
export type JoinConsent =
  | { by: "owner"; at: number }
  | { by: "operator"; at: number; reason: string };

/** A join of two wallets: one is to become part of another one, or is. */
export interface WalletJoin {
  from: string;
  into: string;
  /** Both sides have agreed: what the wallet has, and what comes later, belongs to the other. */
  isJoined: boolean;
  /** In milliseconds since 1970. */
  askedAt: number;
  consents: { from: JoinConsent | null; into: JoinConsent | null };
}

/** The longest chain of wallets that became part of one another. */
const chainMax = 20;
const sourcesPerRead = 100;

/** Reads what a wallet is to become part of, or null. */
export async function readJoin(
  kv: Kv,
  from: string,
): Promise<{ join: WalletJoin; version: string | null } | null> {
  const { value, version } = await kv.get(walletJoinKey(from));
  return value && { join: decodeJoin(value), version };
}

/** Decodes a join's row. */
export function decodeJoin(value: Uint8Array): WalletJoin {
  return fromBytes<WalletJoin>(value);
}

/** Returns the write of a join, checked against the version that was read. */
export function joinWrite(join: WalletJoin, version: string | null): Write {
  const key = walletJoinKey(join.from);
  const into = { key: walletJoinIntoKey(join.into, join.from), value: new Uint8Array() };
  const sets = [{ key, value: toBytes({ ...join }) }, into];
  return { ...emptyWrite(), checks: [{ key, version }], sets };
}

/** Returns the write that removes a join, checked against the version that was read. */
export function joinRemoval({ from, into }: WalletJoin, version: string | null): Write {
  const key = walletJoinKey(from);
  const deletes = [key, walletJoinIntoKey(into, from)];
  return { ...emptyWrite(), checks: [{ key, version }], deletes };
}

/** Returns the wallet that a wallet became part of; itself where it is on its own. */
export async function ownerOf(kv: Kv, personId: string): Promise<string> {
  let owner = personId;
  for (let step = 0; step < chainMax; step++) {
    const found = await readJoin(kv, owner);
    if (!found?.join.isJoined) return owner;
    owner = found.join.into;
  }
  throw new Error(`wallet ${personId} is part of too many others`);
}

/** Lists the joins that name a wallet as the one that others become part of. */
export async function listJoinsInto(kv: Kv, into: string): Promise<WalletJoin[]> {
  const rows = await kv.list({ prefix: walletJoinsIntoPrefix(into), limit: sourcesPerRead });
  const keys = rows.map(({ key }) => walletJoinKey(String(key[2])));
  const found = keys.length === 0 ? [] : await kv.getMany(keys);
  return found.flatMap(({ value }) => (value ? [decodeJoin(value)] : []))
    .filter((join) => join.into === into);
}

/** Returns the wallets that became part of a wallet, also by way of others. */
export async function joinedInto(kv: Kv, personId: string): Promise<string[]> {
  const parts: string[] = [];
  for (let at = -1; at < parts.length; at++) {
    const joins = await listJoinsInto(kv, parts[at] ?? personId);
    parts.push(...joins.filter(({ isJoined }) => isJoined).map(({ from }) => from));
  }
  return parts;
}
