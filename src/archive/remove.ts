import { badRequest } from "../base/errors.ts";
import { toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type ArchivedState, readArchived } from "../ledger/archived.ts";
import {
  carryForward,
  isArchivable,
  readStored,
  type StoredEntry,
} from "../ledger/carry_forward.ts";
import { type AuditActor, auditRow } from "../projects/audit.ts";
import { archivedKey, entryKey } from "../store/keys.ts";
import { emptyWrite, type Write } from "../store/kv.ts";
import { lineHash } from "./line.ts";
import type { ArchiveBody, Archived } from "./schema.ts";

/** Records that entries of a sealed file are about to be removed, once for each file. */
export async function beginFile(
  deps: Pick<Deps, "kv" | "committer" | "id" | "clock">,
  projectId: string,
  { body: { before, sha256 }, by }: { body: ArchiveBody; by: AuditActor },
): Promise<void> {
  const known = await readArchived(deps.kv, projectId);
  if (known?.sha256 === sha256) return;
  const auditAction = {
    by,
    action: "data.archived" as const,
    target: "entries",
    detail: { before, sha256 },
  };
  await deps.committer.commit({
    ...emptyWrite(),
    sets: [auditRow(deps, projectId, auditAction), stateRow(projectId, known, { before, sha256 })],
  });
}

/**
 * Removes entries that are in a sealed file, account by account, as far as they follow what was
 * carried forward before. Each write leaves the accounts complete, so a call may be cut off
 * anywhere and be repeated. Throws 400 for entries that are not archived.
 */
export async function removeArchived(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
  projectId: string,
  { entries, before, sha256 }: ArchiveBody,
): Promise<Archived> {
  // The same in all writes of the call, so that the committer can combine them.
  const known = await readArchived(kv, projectId);
  const state = stateRow(projectId, known, { before, sha256 });
  const result: Archived = { removed: 0, gone: 0, left: [], changed: [] };
  const found: StoredEntry[] = [];
  const rows = await kv.getMany(entries.map(([id]) => entryKey(projectId, id)));
  for (const [at, [id, hash]] of entries.entries()) {
    const row = rows[at];
    const stored = row ? readStored(row) : null;
    if (!row?.value || !stored || stored.entry.kind === "carried") result.gone++;
    else if (lineHash(row.value) !== hash) result.changed.push(id);
    else {
      requireArchivable(stored, Date.parse(before));
      found.push(stored);
    }
  }
  const byUser = Map.groupBy(found, ({ entry }) => entry.user);
  await Promise.all([...byUser].map(async ([user, own]) => {
    let rest = own;
    for (;;) {
      const step = await carryForward(kv, { projectId, user, entries: rest });
      if (!step) break;
      const { write, removed } = step;
      write.sets.push(state);
      if ((await committer.commit(write)) === null) break;
      result.removed += removed.length;
      rest = rest.filter(({ entry }) => !removed.includes(entry.id));
    }
    result.left.push(...rest.map(({ entry }) => entry.id));
  }));
  return result;
}

function stateRow(
  projectId: string,
  known: ArchivedState | null,
  { before, sha256 }: Pick<ArchiveBody, "before" | "sha256">,
): Write["sets"][number] {
  const state: ArchivedState = { before: Math.max(Date.parse(before), known?.before ?? 0), sha256 };
  return { key: archivedKey(projectId), value: toBytes(state) };
}

function requireArchivable({ entry }: StoredEntry, before: number): void {
  if (isArchivable(entry, before)) return;
  throw badRequest("entries", `${entry.id} is not an entry that is archived before that time.`);
}
