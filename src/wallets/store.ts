import { fromBytes, toBytes } from "../base/json.ts";
import { type Authorization, readAuthorization } from "../ledger/authorization.ts";
import type { LinkSubject } from "../paywall/link.ts";
import {
  connectionsPrefix,
  ownAccountsPrefix,
  passkeyKey,
  personPasskeyKey,
  personPasskeysPrefix,
} from "../store/keys.ts";
import { emptyWrite, type Key, type Kv, type Write } from "../store/kv.ts";

/** What a person decided about one user of one project. */
export interface Connection extends LinkSubject {
  authorization: Authorization;
}

/** As many as a page shows. */
const connectionsMax = 100;

/** Adds to the write that a person was asked there. */
export function markConnection(write: Write, key: Key): void {
  write.sets.push({ key, value: new Uint8Array() });
}

/** What still is this person's. */
export async function listConnections(kv: Kv, personId: string): Promise<Connection[]> {
  const rows = await kv.list({ prefix: connectionsPrefix(personId), limit: connectionsMax });
  const found = await Promise.all(rows.map(async ({ key }) => {
    const [projectId, user] = [String(key[2]), String(key[3])];
    const read = await readAuthorization(kv, projectId, user);
    return read && { projectId, user, authorization: read.authorization };
  }));
  return found.flatMap((each) => each?.authorization.personId === personId ? [each] : []);
}

/** The currencies that a person has money in, or had. */
export async function listCurrencies(kv: Kv, personId: string): Promise<string[]> {
  const rows = await kv.list({ prefix: ownAccountsPrefix(personId), limit: connectionsMax });
  return rows.map(({ key }) => String(key[2]));
}

/** A passkey of a person. */
export interface Passkey {
  personId: string;
  /** In base64url. */
  publicKey: string;
  counter: number;
  transports: string[];
  createdAt: number;
  /** When the challenge was made that it answered last: an older answer is a repeated one. */
  challengedAt: number;
}

/** The passkey, or null. */
export async function readPasskey(
  kv: Kv,
  credentialId: string,
): Promise<{ passkey: Passkey; version: string | null } | null> {
  const { value, version } = await kv.get(passkeyKey(credentialId));
  return value && { passkey: fromBytes<Passkey>(value), version };
}

/** The write of a passkey, on the version that it was read in. */
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

/** The ids of a person's passkeys. */
export async function listPasskeys(kv: Kv, personId: string): Promise<string[]> {
  const rows = await kv.list({ prefix: personPasskeysPrefix(personId), limit: 20 });
  return rows.map(({ key }) => String(key[2]));
}
