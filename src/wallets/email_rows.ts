import { createHash } from "node:crypto";
import { fromBytes, toBytes } from "../base/json.ts";
import { type ExpiringKind, keysWithExpiry, withExpiry } from "../store/expiry.ts";
import {
  emailWalletKey,
  emailWalletsPrefix,
  walletEmailKey,
  walletEmailsPrefix,
  walletLinkKey,
  walletLinksPrefix,
  walletMailKey,
  walletMailsPrefix,
} from "../store/keys.ts";
import { emptyWrite, type Kv, type Write } from "../store/kv.ts";

/** An e-mail address that opens a wallet. The address itself is not stored. */
export interface WalletEmail {
  hash: string;
  /** A shortened form of the address by which its owner recognizes it. */
  shown: string;
  /** In milliseconds since 1970. */
  confirmedAt: number;
}

/** The most addresses of one wallet, and wallets of one address. */
export const emailsMax = 5;

/** Lists the addresses that open a person's wallet. */
export async function listEmails(kv: Kv, personId: string): Promise<WalletEmail[]> {
  const rows = await kv.list({ prefix: walletEmailsPrefix(personId), limit: 2 * emailsMax });
  return rows.flatMap(({ key, value }) =>
    value ? [{ ...fromBytes<Omit<WalletEmail, "hash">>(value), hash: String(key[2]) }] : []
  );
}

/** Lists the wallets that an address opens. */
export async function listWalletsOf(kv: Kv, hash: string): Promise<string[]> {
  const rows = await kv.list({ prefix: emailWalletsPrefix(hash), limit: 2 * emailsMax });
  return rows.map(({ key }) => String(key[2]));
}

/** Returns the rows of an address. */
export function emailSets(personId: string, { hash, ...email }: WalletEmail): Write["sets"] {
  return [
    { key: walletEmailKey(personId, hash), value: toBytes(email) },
    { key: emailWalletKey(hash, personId), value: new Uint8Array() },
  ];
}

/** Returns the write that removes an address from a wallet. */
export function emailRemoval(personId: string, hash: string): Write {
  const deletes = [walletEmailKey(personId, hash), emailWalletKey(hash, personId)];
  return { ...emptyWrite(), deletes };
}

/**
 * The purpose of a link in an e-mail: to confirm an address of a wallet, or to open its wallets.
 */
export interface WalletLink {
  /** The wallet that asked for a confirmation; null for a link that opens wallets. */
  confirms: string | null;
  email: Omit<WalletEmail, "confirmedAt">;
  /** The path of the page that the person came from; null for the wallet's page. */
  from: string | null;
  /** In milliseconds since 1970. */
  endsAt: number;
}

const endsAt = (value: Uint8Array) => fromBytes<{ endsAt: number }>(value).endsAt;

/** Links that were sent by e-mail. */
export const walletLinkRows: ExpiringKind = { prefix: walletLinksPrefix, endsAt };

/** How often an address was sent one. */
export const walletMailRows: ExpiringKind = { prefix: walletMailsPrefix, endsAt };

/** Reads a link by its token, or null. */
export async function readWalletLink(
  kv: Kv,
  token: string,
): Promise<{ link: WalletLink; used: Write } | null> {
  const key = walletLinkKey(hashOf(token));
  const { value, version } = await kv.get(key);
  if (!value) return null;
  const deletes = keysWithExpiry(walletLinkRows, { key, value });
  const used = { ...emptyWrite(), checks: [{ key, version }], deletes };
  return { link: fromBytes<WalletLink>(value), used };
}

/** Returns the rows of a new link. */
export function walletLinkSets(token: string, link: WalletLink): Write["sets"] {
  return withExpiry(walletLinkRows, {
    key: walletLinkKey(hashOf(token)),
    value: toBytes({ ...link }),
  });
}

/** The e-mails that one inbox, or one wallet, has caused today. */
interface MailCount {
  count: number;
  /** In milliseconds since 1970. */
  lastAt: number;
  endsAt: number;
}

/** Reads how many e-mails were sent under a name today. */
export async function readMailCount(
  kv: Kv,
  name: string,
): Promise<{ counted: MailCount | null; version: string | null }> {
  const { value, version } = await kv.get(walletMailKey(name));
  return { counted: value && fromBytes<MailCount>(value), version };
}

/** Returns the write of a count, checked against the version that was read. */
export function mailCountWrite(name: string, counted: MailCount, version: string | null): Write {
  const key = walletMailKey(name);
  const sets = withExpiry(walletMailRows, { key, value: toBytes({ ...counted }) });
  return { ...emptyWrite(), checks: [{ key, version }], sets };
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
