// Keys of what requests leave behind besides money: links, and the log. See `keys.ts`.
import type { Key } from "./kv.ts";

/**
 * A code in a link -> what it is for, and until when. Written when a link is created; deleted by
 * the sweep once it has expired.
 */
export const linkKey = (code: string): Key => ["link", code];
/** All codes of links. */
export const linksPrefix: Key = ["link"];

/** The current code of a user's top-up link. Written with it, and swept as it is. */
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
 * When a user was refused for want of money. Written with other writes, at most once an hour;
 * deleted with the payment that follows, or by the sweep after an hour.
 */
export const paywalledKey = (projectId: string, user: string): Key => [
  ...paywalledUserPrefix(projectId, user),
  "at",
];
/** The same of one user. */
export const paywalledUserPrefix = (projectId: string, user: string): Key => [
  "paywalled",
  projectId,
  user,
];
/** All users who were refused. */
export const paywalledPrefix: Key = ["paywalled"];

/** A project's alerts: those that fire, and the last resolved ones. Written by the sweep. */
export const alertsKey = (projectId: string): Key => ["alerts", projectId];
/** Those of all projects. */
export const alertsPrefix: Key = ["alerts"];
/**
 * When links to confirm addresses of alerts were sent, within a day: by whom, and to a hash of
 * which inbox. At most 500.
 */
export const sentConfirmationsKey: Key = ["sent_confirmations"];

/** Statistics of a project's users. Written by the sweep once it has read all of them. */
export const userStatsKey = (projectId: string): Key => ["user_stats", projectId];
/** Those of all projects. */
export const userStatsPrefix: Key = ["user_stats"];
