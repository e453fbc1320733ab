import { firstIdAt } from "../base/ids.ts";
import type { Project } from "../projects/schema.ts";
import { ownEntriesPrefix } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { readOrNull } from "../store/scan.ts";
import { nextWallet } from "./activities.ts";
import type { Entry } from "./entry.ts";
import { decodeEntry } from "./store.ts";

const rowsPerRead = 500;
/** By how much an entry's id may be later than the entry: a clock may have been set back. */
const laterMs = 60 * 60 * 1000;

/**
 * Yields all entries of a project that were written before `to` (ms since 1970), page by page: in
 * the shared mode wallet by wallet, of which other projects' entries are left out. Entries are in
 * the order of their ids, which is not quite that of their time.
 */
export async function* entryPages(
  kv: Kv,
  project: Project,
  to: number,
): AsyncGenerator<Entry[]> {
  if (project.mode === "default") return yield* pagesOf(kv, project.id, { project, to });
  let wallet = await nextWallet(kv, project.id, null);
  for (; wallet !== null; wallet = await nextWallet(kv, project.id, wallet)) {
    yield* pagesOf(kv, wallet, { project, to });
  }
}

async function* pagesOf(
  kv: Kv,
  owner: string,
  { project, to }: { project: Project; to: number },
): AsyncGenerator<Entry[]> {
  const prefix = ownEntriesPrefix(owner);
  const end = [...prefix, firstIdAt("act", to + laterMs)];
  let start = [...prefix, ""];
  for (;;) {
    const rows: Row[] = await kv.list({ prefix, start, end, limit: rowsPerRead });
    yield rows.flatMap(({ value }) => {
      const entry = readOrNull(value, decodeEntry);
      const isOwn = entry && (entry.projectId ?? project.id) === project.id;
      return isOwn && entry.createdAt < to ? [entry] : [];
    });
    const last = rows.at(-1);
    if (!last || rows.length < rowsPerRead) return;
    start = [...last.key, ""];
  }
}
