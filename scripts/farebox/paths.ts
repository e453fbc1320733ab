import { usage } from "./failure.ts";

/** A project's address in the admin API. */
export function projectPath(project: string): string {
  return `/v1/admin/projects/${encodeURIComponent(project)}`;
}

/**
 * A user's address, and what their name needs in the query: `.` and `..` would be taken for steps
 * of the path.
 */
export function userAddress(
  project: string,
  user: string,
): { path: string; query: Record<string, string> } {
  if (user === "" || !user.isWellFormed()) throw usage("A user's id is text, and not empty.");
  const users = `${projectPath(project)}/users`;
  return user === "." || user === ".."
    ? { path: `${users}/-`, query: { user } }
    : { path: `${users}/${encodeURIComponent(user)}`, query: {} };
}
