// Every key of the database: what it holds, who writes it, how long it is kept. Values are JSON as
// bytes. No code outside of this file and its parts below builds
// a key.
import { keyHash } from "./key_bytes.ts";
import type { Key } from "./kv.ts";

export * from "./delivery_keys.ts";
export * from "./request_keys.ts";
export * from "./wallet_keys.ts";

/**
 * The project: settings, prices, upstream. Changed with every change of the project or its keys.
 * Kept forever.
 */
export const projectKey = (projectId: string): Key => ["project", projectId];
/** All projects, in order of creation. */
export const projectsPrefix: Key = ["project"];

/**
 * One API key of a project, without the key itself: scopes, state. Kept forever, also when revoked.
 */
export const apiKeyKey = (projectId: string, keyId: string): Key => ["key", projectId, keyId];
/** All keys of one project, in order of creation. */
export const apiKeysPrefix = (projectId: string): Key => ["key", projectId];

/** SHA-256 of an API key, in hex -> where its record is. Written with the key. Kept forever. */
export const apiKeyHashKey = (hash: string): Key => ["key_hash", hash];

/**
 * One action of an owner or operator: who, what, on what. Written in the action's own write.
 * `trail` is the project, or the instance for what concerns no single project. Kept forever.
 */
export const auditKey = (trail: string, auditId: string): Key => ["audit", trail, auditId];
/** All actions of one trail, in order of time. */
export const auditPrefix = (trail: string): Key => ["audit", trail];
/** The trail of actions that concern no single project. */
export const instanceTrail = "instance";

/**
 * Balance and open holds: of one user in one project (`owner` is the project, `name` the user), or
 * of one wallet (`owner` is the person, `name` the currency). Written by the ledger. Kept forever.
 */
export const accountKey = (owner: string, name: string): Key => ["account", owner, name];
/** All accounts, grouped by owner. */
export const accountsPrefix: Key = ["account"];
/** All accounts of one owner. */
export const ownAccountsPrefix = (owner: string): Key => ["account", owner];

/**
 * One immutable entry, by activity id and so in order of time. Written by the ledger. Kept forever,
 * or until the operator moves it to a sealed file.
 */
export const entryKey = (owner: string, activityId: string): Key => [
  "entry",
  owner,
  activityId,
];
/** All entries, grouped by owner. */
export const entriesPrefix: Key = ["entry"];
/** All entries of one owner, of any account, in order of time. */
export const ownEntriesPrefix = (owner: string): Key => ["entry", owner];

/**
 * How much of an entry has been refunded. Written by the ledger, with each refund. Kept forever.
 */
export const refundedKey = (projectId: string, activityId: string): Key => [
  "refunded",
  projectId,
  activityId,
];

/** All totals of refunds of one project. */
export const refundedPrefix = (projectId: string): Key => ["refunded", projectId];

/** An idempotency key of a money operation -> its entry. Written with the entry. Kept forever. */
export const idempotencyKey = (projectId: string, operation: string, key: string): Key => [
  "idempotency",
  projectId,
  operation,
  key,
];
/** All idempotency keys of money operations. */
export const idempotencyPrefix: Key = ["idempotency"];

/**
 * Marks an account as possibly holding money, in a wallet for that connection. Written with a hold,
 * removed by the sweep when none is left: how the sweep finds what a dead process left behind.
 */
export const holdingKey = (owner: string, name: string, connectionId: string | null): Key =>
  connectionId === null ? ["holding", owner, name] : ["holding", owner, name, connectionId];
/** All accounts that may hold money. */
export const holdingPrefix: Key = ["holding"];

/**
 * The sums of a project in one hour, as one process added them up: use, payments and refusals. A
 * further part names the row. Written with what is counted. Kept forever; a summary adds up the
 * rows of an hour.
 */
export const sumKey = (projectId: string, hourMs: number): Key => ["sum", projectId, hourMs];
/**
 * The spent and the held amount of a budget. `name` is the id of an API key. Written with each hold
 * and entry that counts toward the budget. Kept forever.
 */
export const budgetKey = (projectId: string, name: string): Key => ["budget", projectId, name];
/** All budgets, by project. */
export const budgetsPrefix: Key = ["budget"];
/**
 * What one API key with a budget had spent in version 0.9.0; a further part names the row, as of
 * `sumKey`. Read where the key's budget has no row yet. Kept forever. Version 1.1 may drop it.
 */
export const keySpendKey = (projectId: string, keyId: string): Key => [
  "key_spend",
  projectId,
  keyId,
];
/** All sums of a project, in order of time. */
export const sumsPrefix = (projectId: string): Key => ["sum", projectId];

/**
 * The users of a project who spent most in a period: a month `YYYY-MM`, a day `dYYYY-MM-DD` or an
 * hour `hYYYY-MM-DDTHH`, all in UTC. Written by the sweep. Months are kept forever, days for 400
 * days, hours for 100; removed after that.
 */
export const topUsersKey = (projectId: string, period: string): Key => [
  "top_users",
  projectId,
  period,
];
/** The top users of a project in all periods. */
export const topUsersPrefix = (projectId: string): Key => ["top_users", projectId];

/**
 * The erasure of a user, and its progress. Written with the move of their account, removed when
 * nothing names them any more.
 */
export const forgetJobKey = (projectId: string, user: string): Key => [
  "forget_job",
  projectId,
  user,
];
/** All erasures in progress. */
export const forgetJobsPrefix: Key = ["forget_job"];
/**
 * The last move of one of an owner's accounts to another name. Written with the move. Kept forever.
 */
export const movedKey = (owner: string): Key => ["moved", owner];

/**
 * The state of an account at its last verification without a fault: its last entry and sums.
 * Written by the verification, and by archiving, which ends it; removed when the account moves to
 * another name.
 */
export const verifiedKey = (owner: string, name: string): Key => ["verified", owner, name];

/**
 * Up to when a project's entries were moved to sealed files, and to which one last. Written with
 * each step of archiving. Kept forever.
 */
export const archivedKey = (projectId: string): Key => ["archived", projectId];

/** A Stripe payment -> its deposit. Written with the deposit. Kept forever. */
export const stripePaymentKey = (projectId: string, paymentIntent: string): Key => [
  "stripe_payment",
  projectId,
  paymentIntent,
];
/** All payments to one Stripe account: a project's, or this server's. */
export const stripePaymentsPrefix = (merchantId: string): Key => ["stripe_payment", merchantId];

/** All Stripe payments, grouped by account. */
export const allStripePaymentsPrefix: Key = ["stripe_payment"];

/**
 * Money that Stripe returned from a payment that is not recorded yet. Written with a check that the
 * payment is absent; removed once it is recorded, or by the sweep after 30 days.
 */
export const stripeReversalKey = (
  merchantId: string,
  paymentIntent: string,
  eventId: string,
): Key => ["stripe_reversal", merchantId, paymentIntent, eventId];
/** All returns of one payment. */
export const stripeReversalsPrefix = (merchantId: string, paymentIntent: string): Key => [
  "stripe_reversal",
  merchantId,
  paymentIntent,
];
/** All returns, grouped by payment. */
export const allStripeReversalsPrefix: Key = ["stripe_reversal"];

/**
 * A paid checkout session that was reported and is not booked, and why. Written with each report;
 * removed when it is booked, or by the sweep after 90 days.
 */
export const unbookedPaymentKey = (merchantId: string, sessionId: string): Key => [
  "unbooked_payment",
  merchantId,
  sessionId,
];
/** The payments to one Stripe account that are not booked. */
export const unbookedPaymentsPrefix = (merchantId: string): Key => ["unbooked_payment", merchantId];
/** All payments that are not booked, grouped by account. */
export const allUnbookedPaymentsPrefix: Key = ["unbooked_payment"];

/**
 * Events for one Stripe account that nobody could verify: how many, and why. Written at most once a
 * minute by each process, and by the sweep that then asks Stripe; removed with the next event that
 * is verified, or by the sweep after 7 days.
 */
export const unverifiedEventsKey = (merchantId: string): Key => ["unverified_events", merchantId];
/** The rows of unverified events of all Stripe accounts. */
export const allUnverifiedEventsPrefix: Key = ["unverified_events"];

/**
 * A payment that is on its way to a user, such as a bank transfer, or has failed. Written when
 * Stripe reports it; removed when it is booked, or by the sweep after 30 days.
 */
export const pendingPaymentKey = (projectId: string, user: string, sessionId: string): Key => [
  "pending_payment",
  projectId,
  user,
  sessionId,
];
/** The payments that are on their way to a user. */
export const pendingPaymentsPrefix = (projectId: string, user: string): Key => [
  "pending_payment",
  projectId,
  user,
];
/** All payments that are on their way. */
export const allPendingPaymentsPrefix: Key = ["pending_payment"];

/**
 * A console session, by the SHA-256 of its cookie. Written at the sign-in; removed at the sign-out
 * or, once it has expired, by the sweep.
 */
export const consoleSessionKey = (hash: string): Key => ["console_session", hash];
/**
 * When a session expires, in ms -> the rows that the sweep removes. Written and removed with the
 * session.
 */
export const consoleSessionEndKey = (endsAt: number, hash: string): Key => [
  "console_session_end",
  endsAt,
  hash,
];
/** All expiry times of sessions, in order of time. */
export const consoleSessionEndsPrefix: Key = ["console_session_end"];
/**
 * Marks a session's form as sent, so that it creates a thing only once; with the created secret,
 * encrypted by the session's cookie. Swept with the session.
 */
export const consoleFormKey = (hash: string, id: string): Key => ["console_form", hash, id];
/** All forms sent in one session. */
export const consoleFormsPrefix = (hash: string): Key => ["console_form", hash];

/** A batch that landed, or may not land any more. Removed by the next batch, or by the sweep. */
export const commitMarkerKey = (batchId: string): Key => ["commit", batchId];
/** All commit markers. */
export const commitMarkersPrefix: Key = ["commit"];

/** The row that `GET /readyz` writes and reads back. One row, overwritten. */
export const readinessKey: Key = ["readiness"];

/**
 * Whether a model of a project's upstream reports hidden reasoning. Written when that is first
 * reported, and when it has changed. Kept forever.
 */
export const modelReasoningKey = (
  { projectId, name, url }: { projectId: string; name: string; url: string },
  model: string,
): Key => ["reasoning", projectId, name, url, model];

/** The same for all projects, by the upstream's URL. Written by 0.9.0 only. */
export const sharedReasoningKey = (url: string, model: string): Key => ["reasoning", url, model];

/**
 * Until when the breaker of a target is open, in ms since 1970: of a model of an upstream, by a
 * hash of the upstream's URL, name and key. Written without a check by each process that opens it;
 * removed when it closes, or once that time has passed.
 */
export const targetHealthKey = (upstreamHash: string, model: string): Key => [
  "target_health",
  upstreamHash,
  model,
];
/** The breakers of all targets. */
export const targetHealthPrefix: Key = ["target_health"];

/**
 * Refreshed list prices: how many parts they have, and their day. Written by the operator. Kept
 * until the next refresh.
 */
export const catalogueHeadKey: Key = ["catalogue"];
/**
 * A part of the refreshed list prices, as a part of JSON text. Written and deleted with the head.
 */
export const cataloguePartKey = (refreshId: string, part: number): Key => [
  "catalogue",
  refreshId,
  part,
];

/**
 * The row by which one process informs the others of the same store. Written by it every second or
 * two, and removed when it ends, or by another process a minute after its death.
 */
export const processKey = (processId: string): Key => ["process", processId];
/** All processes that are alive. */
export const processesPrefix: Key = ["process"];

/** The process that does some work for all, and until when. Written and removed by that process. */
export const leaseKey = (name: string): Key => ["lease", name];
/** All leases. */
export const leasesPrefix: Key = ["lease"];

/**
 * Whose turn it is to write a row for which processes contend, and who waits for it: a hint that
 * decides nothing. Named by a hash of the row's key. Written with the row by the process whose turn
 * ends; removed by the sweep.
 */
export const rowTurnKey = (row: Key): Key => ["row_turn", keyHash(row)];
/** All turns. */
export const rowTurnsPrefix: Key = ["row_turn"];
/**
 * A process that waits for its turn to write a row. Written by that process; removed with the write
 * that puts it into the turn's queue, or by the sweep.
 */
export const rowWaiterKey = (row: Key, processId: string): Key => [
  ...rowWaitersPrefix(row),
  processId,
];
/** All processes that wait for a row and are in no queue yet. */
export const rowWaitersPrefix = (row: Key): Key => ["row_waiter", keyHash(row)];
/** The processes that wait for any row. */
export const allRowWaitersPrefix: Key = ["row_waiter"];

/**
 * When a row that is kept for a time ends, in ms since 1970, and which row: no value. `part` is one
 * of a few, which processes divide among themselves. Written and removed with that row.
 */
export const expiryKey = (part: number, endsAt: number, key: Key): Key => [
  ...expiryPrefix(part),
  endsAt,
  ...key,
];
/** All ends of one part, in order of time. */
export const expiryPrefix = (part: number): Key => ["expiry", part];
/** How often older rows without an end were looked for, and when last. Written by the sweep. */
export const expiryIndexedKey: Key = ["expiry_indexed"];

/**
 * With which keys of `SECRETS_KEY` secrets may be encrypted, by fingerprint, and how far the
 * current walk over them has come. Written by each process at its start, and by each resealing.
 * Kept forever.
 */
export const sealedWithKey: Key = ["sealed_with"];

/** The format of the rows, which an older version refuses. Written at the start. Kept forever. */
export const dataFormatKey: Key = ["data_format"];

/** The progress of a copy from another store. Removed when the copy is complete. */
export const copyKey: Key = ["copy"];
