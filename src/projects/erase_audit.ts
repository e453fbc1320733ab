import { decodeUtf8, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { type Eraser, eraseRows, renamed } from "../store/erase.ts";
import { auditPrefix } from "../store/keys.ts";

/** Puts the pseudonym into the audit trail, where a user was what something happened to. */
export function createAuditEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return eraseRows({
    name: "auditRows",
    kv,
    committer,
    prefix: ({ projectId }) => auditPrefix(projectId),
    rewrite({ key, value }, erasure) {
      const text = value && decodeUtf8(value);
      if (!text?.includes(JSON.stringify(erasure.user))) return null;
      const after = toBytes(renamed(JSON.parse(text), erasure));
      return decodeUtf8(after) === text ? null : { sets: [{ key, value: after }], deletes: [] };
    },
  });
}
