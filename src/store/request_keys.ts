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
