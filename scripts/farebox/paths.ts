import { usage } from "./failure.ts";

/** Returns a project's path in the admin API. */
export function projectPath(project: string): string {
  return `/v1/admin/projects/${encodeURIComponent(project)}`;
}

/**
 * Returns a user's path, and the query that some ids need: `.` and `..` would be taken for path
 * segments.
 */
export function userAddress(
  project: string,
  user: string,
): { path: string; query: Record<string, string> } {
  if (user === "" || !user.isWellFormed()) throw usage("A user id must be a non-empty text.");
  const users = `${projectPath(project)}/users`;
  return user === "." || user === ".."
    ? { path: `${users}/-`, query: { user } }
    : { path: `${users}/${encodeURIComponent(user)}`, query: {} };
}
