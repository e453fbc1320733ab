import type { Kv } from "../store/kv.ts";
import type { Project } from "./schema.ts";
import { listProjects } from "./store.ts";

/** A search by name reads at most so many projects. */
const searchedMax = 500;

/**
 * Lists up to `limit` projects whose name contains `name`, in order of creation, from `cursor` (an
 * id, inclusive). A page may have fewer than there are: `nextCursor` says where to continue, and is
 * null at the end.
 */
export async function searchProjects(
  kv: Kv,
  { name, cursor, limit }: { name: string; cursor: string | undefined; limit: number },
): Promise<{ projects: Project[]; nextCursor: string | null }> {
  const most = name === "" ? limit + 1 : searchedMax + 1;
  const read = await listProjects(kv, most, cursor);
  const wanted = name.toLowerCase();
  const found = read.filter((each) => each.name.toLowerCase().includes(wanted));
  const next = found[limit] ?? read[most - 1];
  return { projects: found.slice(0, limit), nextCursor: next?.id ?? null };
}
