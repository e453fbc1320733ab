import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import { auditPrefix } from "../store/keys.ts";
import type { AuditRow } from "./audit.ts";

/**
 * Puts the pseudonym into the rows of what was done for a user, and takes the reason out, which
 * may name them too. Who did it, when and how much stays.
 */
export function createAuditEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return eraseRows({
    name: "audit rows",
    kv,
    committer,
    prefix: ({ projectId }) => auditPrefix(projectId),
    rewrite({ key, value }, { user, pseudonym }) {
      const row = value && fromBytes<AuditRow>(value);
      if (row?.target !== user) return null;
      const { reason: _, ...detail } = row.detail;
      const renamed: AuditRow = { ...row, target: pseudonym, detail };
      return { sets: [{ key, value: toBytes(renamed) }], deletes: [] };
    },
  });
}
