// Every key of the database: what it holds, who writes it, how long it lives. Values are JSON
// as bytes. Nothing outside of this file, and of that for events and deliveries, spells a key.
import type { Key } from "./kv.ts";

export * from "./delivery_keys.ts";

/** The project: settings, prices, upstream. Moved by every change of project or key. For ever. */
export const projectKey = (projectId: string): Key => ["project", projectId];
/** All projects, in order of creation. */
export const projectsPrefix: Key = ["project"];

/** One API key of a project, without the key itself: scopes, state. For ever, also revoked. */
export const apiKeyKey = (projectId: string, keyId: string): Key => ["key", projectId, keyId];
/** All keys of one project, in order of creation. */
export const apiKeysPrefix = (projectId: string): Key => ["key", projectId];

/** SHA-256 of an API key, in hex -> where its record is. Written with the key. For ever. */
export const apiKeyHashKey = (hash: string): Key => ["key_hash", hash];

/**
 * One action of an owner or operator: who, what, to what. Written in the action's own write.
 * `trail` is the project, or the instance for what concerns no project alone. For ever.
 */
export const auditKey = (trail: string, auditId: string): Key => ["audit", trail, auditId];
/** All actions of one trail, in order of time. */
export const auditPrefix = (trail: string): Key => ["audit", trail];
/** The trail of what concerns no project alone. */
export const instanceTrail = "instance";

/**
 * Balance and open holds: of one user in one project (`owner` is the project, `name` the user), or
 * of one wallet (`owner` is the person, `name` the currency). By the ledger. For ever.
 */
export const accountKey = (owner: string, name: string): Key => ["account", owner, name];
/** All accounts, those of one owner together. */
export const accountsPrefix: Key = ["account"];
/** All accounts of one owner. */
export const ownAccountsPrefix = (owner: string): Key => ["account", owner];

/** One immutable entry, by activity id and so in order of time. By the ledger. For ever. */
export const entryKey = (owner: string, activityId: string): Key => [
  "entry",
  owner,
  activityId,
];
/** All entries, those of one owner together. */
export const entriesPrefix: Key = ["entry"];
/** All entries of one owner, of whatever account, in order of time. */
export const ownEntriesPrefix = (owner: string): Key => ["entry", owner];

/** How much of an entry has been refunded. By the ledger, with each refund. For ever. */
export const refundedKey = (projectId: string, activityId: string): Key => [
  "refunded",
  projectId,
  activityId,
];

/** An idempotency key of a money operation -> its entry. In the entry's own write. For ever. */
export const idempotencyKey = (projectId: string, operation: string, key: string): Key => [
  "idempotency",
  projectId,
  operation,
  key,
];
/** All idempotency keys of money operations. */
export const idempotencyPrefix: Key = ["idempotency"];

/**
 * Says that an account may hold money, in a wallet for that connection. Written with a hold,
 * removed by the sweep once there is none: how the sweep finds what a dead process left.
 */
export const holdingKey = (owner: string, name: string, connectionId: string | null): Key =>
  connectionId === null ? ["holding", owner, name] : ["holding", owner, name, connectionId];
/** All accounts that may hold money. */
export const holdingPrefix: Key = ["holding"];

/**
 * What a person allows one user of a project to spend of their wallet, and what of it is spent
 * today. Written by the person's decisions and, in the same write, by each charge. For ever.
 */
export const authorizationKey = (projectId: string, user: string): Key => [
  "authorization",
  projectId,
  user,
];
/** All users of a project for whom a person has decided anything. */
export const authorizationsPrefix = (projectId: string): Key => ["authorization", projectId];
/**
 * A person's connection -> its project and user. Written with the authorization, and with what is
 * paid into the wallet by it. For ever, under a pseudonym once the user is forgotten.
 */
export const connectionKey = (personId: string, projectId: string, user: string): Key => [
  "connection",
  personId,
  projectId,
  user,
];
/** All projects and users that a person was ever connected to. */
export const connectionsPrefix = (personId: string): Key => ["connection", personId];
/** All connections, those of one person together. */
export const allConnectionsPrefix: Key = ["connection"];
/**
 * A passkey: whose it is, its public key. Written at its registration and by each use. For ever.
 */
export const passkeyKey = (credentialId: string): Key => ["passkey", credentialId];
/** A person's passkeys: no value. Written with the passkey. */
export const personPasskeyKey = (personId: string, credentialId: string): Key => [
  "person_passkey",
  personId,
  credentialId,
];
/** Which of a person's device cookies count. Written when a device ends the others'. For ever. */
export const deviceEpochKey = (personId: string): Key => ["device_epoch", personId];
/** All passkeys of a person. */
export const personPasskeysPrefix = (personId: string): Key => ["person_passkey", personId];

/**
 * What was used, paid and refused in a project in one hour, as one process added it up: a further
 * part names the row. Written with what it counts. For ever; a summary adds the rows of an hour.
 */
export const sumKey = (projectId: string, hourMs: number): Key => ["sum", projectId, hourMs];
/** All sums of a project, in order of time. */
export const sumsPrefix = (projectId: string): Key => ["sum", projectId];

/** The users of a project who spent most in a month, `YYYY-MM`, UTC. Written by the sweep. */
export const topUsersKey = (projectId: string, month: string): Key => [
  "top_users",
  projectId,
  month,
];
/** Those of a project in all months. */
export const topUsersPrefix = (projectId: string): Key => ["top_users", projectId];

/**
 * A user who is being forgotten, and how far that has come. Written with the move of their account,
 * removed when nothing names them any more.
 */
export const forgetJobKey = (projectId: string, user: string): Key => [
  "forget_job",
  projectId,
  user,
];
/** Everyone who is being forgotten. */
export const forgetJobsPrefix: Key = ["forget_job"];
/** The last move of one of an owner's accounts to another name. Written with the move. For ever. */
export const movedKey = (owner: string): Key => ["moved", owner];

/** A payment at Stripe -> the deposit that it made. In the deposit's own write. For ever. */
export const stripePaymentKey = (projectId: string, paymentIntent: string): Key => [
  "stripe_payment",
  projectId,
  paymentIntent,
];
/** All payments at one account of Stripe: a project's, or this server's. */
export const stripePaymentsPrefix = (merchantId: string): Key => ["stripe_payment", merchantId];

/** All payments at Stripe, those at one account together. */
export const allStripePaymentsPrefix: Key = ["stripe_payment"];

/**
 * Money that Stripe paid back of a payment that is not booked yet. Written with its absence
 * checked, removed once it is booked, or by the sweep after 30 days.
 */
export const stripeReversalKey = (
  merchantId: string,
  paymentIntent: string,
  eventId: string,
): Key => ["stripe_reversal", merchantId, paymentIntent, eventId];
/** All of one payment. */
export const stripeReversalsPrefix = (merchantId: string, paymentIntent: string): Key => [
  "stripe_reversal",
  merchantId,
  paymentIntent,
];
/** All of them, those of one payment together. */
export const allStripeReversalsPrefix: Key = ["stripe_reversal"];

/** A chat's idempotency key: running, or its stored answer. Lives 24 hours, then swept. */
export const chatReplayKey = (projectId: string, key: string): Key => [
  "chat_replay",
  projectId,
  key,
];
/** All idempotency keys of a project's chats. */
export const chatReplaysPrefix = (projectId: string): Key => ["chat_replay", projectId];
/** When what is under a chat's key ends, in ms -> swept from here. Written and removed with it. */
export const chatReplayDueKey = (dueMs: number, projectId: string, key: string): Key => [
  "chat_replay_due",
  dueMs,
  projectId,
  key,
];
/** All ends of stored answers, in order of time. */
export const chatReplayDuePrefix: Key = ["chat_replay_due"];

/**
 * Who is signed in to the console, by SHA-256 of the cookie. Written at the sign-in, removed at the
 * sign-out or, once it has ended, by the sweep.
 */
export const consoleSessionKey = (hash: string): Key => ["console_session", hash];
/** When a session ends, in ms -> swept from here. Written and removed with it. */
export const consoleSessionEndKey = (endsAt: number, hash: string): Key => [
  "console_session_end",
  endsAt,
  hash,
];
/** All ends of sessions, in order of time. */
export const consoleSessionEndsPrefix: Key = ["console_session_end"];
/**
 * That a form of a session was sent: what it makes is made once; and the secret that it made,
 * sealed by the session's cookie. Swept with the session.
 */
export const consoleFormKey = (hash: string, id: string): Key => ["console_form", hash, id];
/** All forms sent in one session. */
export const consoleFormsPrefix = (hash: string): Key => ["console_form", hash];

/** That a batch landed, or may not land any more. Removed by the next batch, or the sweep. */
export const commitMarkerKey = (batchId: string): Key => ["commit", batchId];
/** All commit markers. */
export const commitMarkersPrefix: Key = ["commit"];

/** What `GET /readyz` writes and reads back. One row, overwritten. */
export const readinessKey: Key = ["readiness"];
