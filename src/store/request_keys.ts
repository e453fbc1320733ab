// Keys of what requests leave behind besides money: links, the log, and kept responses. See
// `keys.ts`.
import { keptName } from "./kept_name.ts";
import type { Key } from "./kv.ts";

/**
 * A code in a link -> what it is for, and until when. Written when a link is created; deleted by
 * the sweep once it has expired.
 */
export const linkKey = (code: string): Key => ["link", code];
/** All codes of links. */
export const linksPrefix: Key = ["link"];

/** The current code of a user's top-up link. Written and swept with the link. */
export const userLinkKey = (projectId: string, user: string): Key => [
  ...userLinkPrefix(projectId, user),
  "topup",
];
/** The current codes of one user. */
export const userLinkPrefix = (projectId: string, user: string): Key => [
  "user_link",
  projectId,
  user,
];
/** The current codes of all users. */
export const userLinksPrefix: Key = ["user_link"];

/**
 * Up to 64 requests of a project, each as a list of its columns, in the order in which they ended.
 * Written with other writes, and by the process alone within a second; swept after some days.
 */
export const requestsKey = (projectId: string, rowId: string): Key => [
  ...requestsPrefix(projectId),
  rowId,
];
/** All requests of one project, in order of time. */
export const requestsPrefix = (projectId: string): Key => ["requests", projectId];

/**
 * When a user, by a hash of their id, was refused for want of money; 0.9.0 had the id itself.
 * Written with other writes, at most once an hour; deleted with the payment that follows, or by the
 * sweep after an hour.
 */
export const paywalledKey = (projectId: string, userHash: string): Key => [
  ...paywalledUserPrefix(projectId, userHash),
  "at",
];
/** The rows of one user who has seen the paywall. */
export const paywalledUserPrefix = (projectId: string, userHash: string): Key => [
  "paywalled",
  projectId,
  userHash,
];
/** All users who were refused. */
export const paywalledPrefix: Key = ["paywalled"];

/** A project's alerts: those that fire, and the last resolved ones. Written by the sweep. */
export const alertsKey = (projectId: string): Key => ["alerts", projectId];
/** The alerts of all projects. */
export const alertsPrefix: Key = ["alerts"];
/**
 * When links to confirm addresses of alerts were sent, within a day: by whom, and to a hash of
 * which inbox. At most 500; removed a day after the last one.
 */
export const sentConfirmationsKey: Key = ["sent_confirmations"];

/** Statistics of a project's users. Written by the sweep once it has read all of them. */
export const userStatsKey = (projectId: string): Key => ["user_stats", projectId];
/** The statistics of the users of all projects. */
export const userStatsPrefix: Key = ["user_stats"];

/**
 * A user's idempotency key of a chat, by a hash of the user's id: running, or its stored response.
 * Kept for 24 hours, then swept.
 */
export const chatReplayKey = (projectId: string, key: string, userHash: string): Key => [
  "chat_replay",
  projectId,
  key,
  userHash,
];
/** All idempotency keys of a project's chats. */
export const chatReplaysPrefix = (projectId: string): Key => ["chat_replay", projectId];
/**
 * Where 0.9.0 wrote when a stored response expires: replaced by `expiryKey` at the first start.
 * Version 1.1 may drop it.
 */
export const oldReplayDuePrefix: Key = ["chat_replay_due"];
/** All idempotency keys of all chats. */
export const allChatReplaysPrefix: Key = ["chat_replay"];

/**
 * A response that a project's cache keeps, by whose it is (a hash of the user's id, or `all`) and a
 * hash of its request. Written with the charge of the call that it answered. Kept as long as the
 * project's settings say, then swept.
 */
export const cachedResponseKey = (projectId: string, whose: string, requestHash: string): Key => [
  "cached_response",
  projectId,
  whose,
  requestHash,
];
/** All responses that a project's cache keeps. */
export const cachedResponsesPrefix = (projectId: string): Key => ["cached_response", projectId];
/** The responses that the caches of all projects keep. */
export const allCachedResponsesPrefix: Key = ["cached_response"];

/**
 * A response that an upstream keeps, or an item of one, by the name of its id: whose it is, and how
 * many tokens it stands for. Written with its charge. Kept for 30 days, then swept.
 */
export const keptIdKey = (projectId: string, id: string): Key => [
  "kept_id",
  projectId,
  keptName(id),
];
/** All ids of all projects. */
export const allKeptIdsPrefix: Key = ["kept_id"];
/** All ids of one project. */
export const keptIdsPrefix = (projectId: string): Key => ["kept_id", projectId];
/**
 * One turn of a conversation, by its response: input and output, where the upstream keeps neither.
 * Written with its charge. Kept for 30 days, then swept.
 */
export const keptTurnKey = (projectId: string, responseId: string): Key => [
  "kept_turn",
  projectId,
  keptName(responseId),
];
/** All turns of all projects. */
export const allKeptTurnsPrefix: Key = ["kept_turn"];
/** All turns of one project. */
export const keptTurnsPrefix = (projectId: string): Key => ["kept_turn", projectId];
/** How much a user's turn stores, in order of time. Written and removed with the turn. */
export const keptByUserKey = (
  projectId: string,
  user: string,
  { expiresAt, response }: { expiresAt: number; response: string },
): Key => ["kept_by_user", projectId, user, expiresAt, response];
/** All of a user's turns, or of a project's, or of everybody's. */
export const keptByUserPrefix = (projectId?: string, user?: string): Key =>
  ["kept_by_user", projectId, user].filter((part) => part !== undefined);
