import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows, type Erasure } from "../store/erase.ts";
import { auditPrefix } from "../store/keys.ts";
import type { AuditRow } from "./audit.ts";
import { isKeyOf } from "./erase_keys.ts";
import { listApiKeys } from "./store.ts";

/**
 * Puts the pseudonym into the rows of what was done for a user, and takes the reason out, which may
 * name them too; and out of those of their keys the keys' names. Who did it, when and how much
 * stays. Runs after the keys have the pseudonym.
 */
export function createAuditEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  const name = "audit rows";
  const eraserFor = (keyIds: ReadonlySet<string>) =>
    eraseRows({
      name,
      kv,
      committer,
      prefix: ({ projectId }) => auditPrefix(projectId),
      rewrite({ key, value }, erasure) {
        const row = value && fromBytes<AuditRow>(value);
        const renamed = row && withoutUser(row, erasure, keyIds);
        return renamed && { sets: [{ key, value: toBytes(renamed) }], deletes: [] };
      },
    });
  return {
    name,
    async page(erasure, place, budget) {
      const keys = await listApiKeys(kv, erasure.projectId);
      budget.spend(keys.length);
      const own = keys.filter((key) => isKeyOf(key, erasure.pseudonym));
      return await eraserFor(new Set(own.map(({ id }) => id))).page(erasure, place, budget);
    },
  };
}

/** The row without what names the user; null where nothing does. */
function withoutUser(
  row: AuditRow,
  { user, pseudonym }: Erasure,
  keyIds: ReadonlySet<string>,
): AuditRow | null {
  if (row.target === user) {
    const { reason: _, ...detail } = row.detail;
    return { ...row, target: pseudonym, detail };
  }
  const { name, ...detail } = row.detail;
  return name !== undefined && keyIds.has(row.target) ? { ...row, detail } : null;
}
