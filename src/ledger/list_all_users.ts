import type { Project } from "../projects/schema.ts";
import type { Kv } from "../store/kv.ts";
import { type Listing, rowsPerPage } from "../store/listing.ts";
import { listUsersAfter } from "./users.ts";

/** All users of a project with their balances as they count now, in order of their ids. */
export function listAllUsers(kv: Kv, project: Project, now: () => number): Listing {
  return async ({ after }) => {
    const page = { after, limit: rowsPerPage, now: now() };
    const users = await listUsersAfter(kv, project, page);
    return {
      records: users.map(({ balanceFormatted: _, ...user }) => ({
        ...user,
        authorization: user.authorization && { ...user.authorization },
      })),
      next: users.length === rowsPerPage ? users.at(-1)?.user ?? null : null,
    };
  };
}
