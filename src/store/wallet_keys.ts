// Keys of wallets: who they belong to, and who may charge them. Their money is under the keys of
// accounts. See `keys.ts`.
import type { Key } from "./kv.ts";

/**
 * What a person allows one user of a project to spend from their wallet, and what of it is spent
 * today. Written by the person's decisions and with each charge. Kept forever.
 */
export const authorizationKey = (projectId: string, user: string): Key => [
  "authorization",
  projectId,
  user,
];
/** All users of a project for whom a person has decided anything. */
export const authorizationsPrefix = (projectId: string): Key => ["authorization", projectId];
/**
 * A person's connection -> its project and user. Written with the authorization, and with payments
 * into the wallet. Kept forever; under a pseudonym once the user is erased.
 */
export const connectionKey = (personId: string, projectId: string, user: string): Key => [
  "connection",
  personId,
  projectId,
  user,
];
/** All projects and users that a person was ever connected to. */
export const connectionsPrefix = (personId: string): Key => ["connection", personId];
/** All connections, grouped by person. */
export const allConnectionsPrefix: Key = ["connection"];
/**
 * A passkey: its person and its public key. Written at its registration and by each use. Kept
 * forever.
 */
export const passkeyKey = (credentialId: string): Key => ["passkey", credentialId];
/** A person's passkeys: no value. Written with the passkey. */
export const personPasskeyKey = (personId: string, credentialId: string): Key => [
  "person_passkey",
  personId,
  credentialId,
];
/**
 * A device of a person, by the SHA-256 of its cookie: whose it is, and until when. Written with the
 * person's first decision there, by each sign-in, and once a day while it is in use; removed when
 * it forgets the wallet, or by the sweep 400 days after its last use.
 */
export const deviceKey = (hash: string): Key => [...devicesPrefix, hash];
/** All devices. */
export const devicesPrefix: Key = ["device"];
/** A device of a person -> its end. Written and removed with the device. */
export const personDeviceKey = (personId: string, hash: string): Key => [
  ...allPersonDevicesPrefix,
  personId,
  hash,
];
/** All devices, grouped by person. */
export const allPersonDevicesPrefix: Key = ["person_device"];
/** All devices of a person. */
export const personDevicesPrefix = (personId: string): Key => [...allPersonDevicesPrefix, personId];
/**
 * Which of a person's devices are signed in. Written when a device signs out the others. Kept
 * forever.
 */
export const deviceEpochKey = (personId: string): Key => ["device_epoch", personId];
/**
 * An e-mail address that opens a wallet, by its hash: how it is shown. Written when its owner
 * confirms it. Kept until the person removes it.
 */
export const walletEmailKey = (personId: string, hash: string): Key => [
  ...allWalletEmailsPrefix,
  personId,
  hash,
];
/** All e-mail addresses, grouped by person. */
export const allWalletEmailsPrefix: Key = ["wallet_email"];
/** All e-mail addresses of a person. */
export const walletEmailsPrefix = (personId: string): Key => [...allWalletEmailsPrefix, personId];
/** An e-mail address, by its hash -> a wallet that it opens: no value. Written with the former. */
export const emailWalletKey = (hash: string, personId: string): Key => [
  "email_wallet",
  hash,
  personId,
];
/** All wallets that an e-mail address opens. */
export const emailWalletsPrefix = (hash: string): Key => ["email_wallet", hash];
/**
 * A link that was sent by e-mail, by the SHA-256 of its token: what it is for. Removed when it is
 * used, or by the sweep after half an hour.
 */
export const walletLinkKey = (hash: string): Key => [...walletLinksPrefix, hash];
/** All such links. */
export const walletLinksPrefix: Key = ["wallet_link"];
/**
 * How often an e-mail address was sent such a link, by its hash. Removed by the sweep after a day.
 */
export const walletMailKey = (hash: string): Key => [...walletMailsPrefix, hash];
/** All such counts. */
export const walletMailsPrefix: Key = ["wallet_mail"];
/**
 * That a wallet is to become part of another one, or is. Written by the operator and by what both
 * owners decide. Kept forever once both have confirmed.
 */
export const walletJoinKey = (personId: string): Key => [...walletJoinsPrefix, personId];
/** All joins, by the wallet that becomes part of another one. */
export const walletJoinsPrefix: Key = ["wallet_join"];
/** A wallet -> one that is to become part of it, or is: no value. Written and removed with it. */
export const walletJoinIntoKey = (into: string, from: string): Key => [
  "wallet_join_into",
  into,
  from,
];
/** All wallets that are to become part of a wallet, or are. */
export const walletJoinsIntoPrefix = (into: string): Key => ["wallet_join_into", into];
/** All passkeys of a person. */
export const personPasskeysPrefix = (personId: string): Key => ["person_passkey", personId];
