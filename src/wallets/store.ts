import { fromBytes, toBytes } from "../base/json.ts";
import { type Authorization, decodeAuthorization } from "../ledger/authorization.ts";
import type { LinkSubject } from "../paywall/link_subject.ts";
import {
  authorizationKey,
  connectionsPrefix,
  ownAccountsPrefix,
  passkeyKey,
  personPasskeyKey,
  personPasskeysPrefix,
} from "../store/keys.ts";
import { emptyWrite, type Key, type Kv, type Write } from "../store/kv.ts";
import { pagesUnder } from "../store/scan.ts";

/** A person's decision about one user of one project. */
export interface WalletConnection extends LinkSubject {
  authorization: Authorization;
}

const connectionsPerRead = 100;
/** Far more currencies than exist in use. */
const currenciesMax = 100;

/** Adds to the write that a person was connected there. */
export function markConnection(write: Write, key: Key): void {
  write.sets.push({ key, value: new Uint8Array() });
}

/** Lists everything that is still a person's: each can be ended. */
export async function listConnections(kv: Kv, personId: string): Promise<WalletConnection[]> {
  const own: WalletConnection[] = [];
  for await (const rows of pagesUnder(kv, connectionsPrefix(personId), connectionsPerRead)) {
    const subjects = rows.map(({ key }) => ({ projectId: String(key[2]), user: String(key[3]) }));
    const keys = subjects.map(({ projectId, user }) => authorizationKey(projectId, user));
    const found = keys.length === 0 ? [] : await kv.getMany(keys);
    for (const [at, subject] of subjects.entries()) {
      const value = found[at]?.value;
      const authorization = value && decodeAuthorization(value);
      if (authorization?.personId === personId) own.push({ ...subject, authorization });
    }
  }
  return own;
}

/** Lists the currencies that a person has or had money in. */
export async function listCurrencies(kv: Kv, personId: string): Promise<string[]> {
  const rows = await kv.list({ prefix: ownAccountsPrefix(personId), limit: currenciesMax });
  return rows.map(({ key }) => String(key[2]));
}

/** A passkey of a person. */
export interface Passkey {
  personId: string;
  /** In base64url. */
  publicKey: string;
  counter: number;
  createdAt: number;
  /** The last challenges that it answered, each by its creation time: none counts twice. */
  answered: number[];
}

/** Reads the passkey, or null. */
export async function readPasskey(
  kv: Kv,
  credentialId: string,
): Promise<{ passkey: Passkey; version: string | null } | null> {
  const { value, version } = await kv.get(passkeyKey(credentialId));
  return value && { passkey: fromBytes<Passkey>(value), version };
}

/** Returns the write of a passkey, checked against the version that was read. */
export function passkeyWrite(
  credentialId: string,
  passkey: Passkey,
  version: string | null,
): Write {
  const key = passkeyKey(credentialId);
  const own = { key: personPasskeyKey(passkey.personId, credentialId), value: new Uint8Array() };
  const sets = [{ key, value: toBytes(passkey) }, own];
  return { ...emptyWrite(), checks: [{ key, version }], sets };
}

/** Returns the write that removes a passkey, checked against the version that was read. */
export function passkeyRemoval(credentialId: string, personId: string, version: string | null) {
  const key = passkeyKey(credentialId);
  const deletes = [key, personPasskeyKey(personId, credentialId)];
  return { ...emptyWrite(), checks: [{ key, version }], deletes };
}

/** The most passkeys of a person; two added at once may exceed it by one. */
export const passkeysMax = 20;

/** Lists a person's passkeys, oldest first. */
export async function listPasskeys(
  kv: Kv,
  personId: string,
): Promise<(Passkey & { id: string })[]> {
  const rows = await kv.list({ prefix: personPasskeysPrefix(personId), limit: 2 * passkeysMax });
  const ids = rows.map(({ key }) => String(key[2]));
  const found = ids.length === 0 ? [] : await kv.getMany(ids.map(passkeyKey));
  const passkeys = found.flatMap(({ value }, at) =>
    value ? [{ id: ids[at] ?? "", ...fromBytes<Passkey>(value) }] : []
  );
  return passkeys.sort((one, other) => one.createdAt - other.createdAt);
}
