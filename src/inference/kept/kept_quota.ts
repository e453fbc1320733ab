import { BoundedMap } from "../../base/bounded_map.ts";
import { errorFields } from "../../base/errors.ts";
import { fromBytes } from "../../base/json.ts";
import { keptUserBytesMax } from "../../base/limits.ts";
import type { Deps } from "../../deps.ts";
import { keyText } from "../../store/batch.ts";
import { keptByUserPrefix } from "../../store/keys.ts";
import type { Key } from "../../store/kv.ts";
import { listAfter } from "../../store/scan.ts";
import { forgetResponse } from "./kept_responses.ts";
import type { EndUserRef } from "../admit/rate_limiter.ts";

/** Bounds what is kept of one user's conversations. */
export interface KeptQuota {
  /** So many bytes were kept for the user. Where it is too much, the oldest turns are removed. */
  added(user: EndUserRef, bytes: number): void;
}

/** What a user may add before it is looked again at all that they keep, in bytes. */
const unlookedBytes = 1024 * 1024;
const usersMax = 10_000;
const rowsPerRead = 500;

/**
 * Creates the quota. What a user keeps is added up from its rows, at the user's first turn in this
 * process and then once for each mebibyte: a sum that is stored could drift.
 */
export function createKeptQuota(
  deps: Pick<Deps, "kv" | "committer" | "log">,
): KeptQuota {
  /** Bytes that were added since the last look, by user. */
  const unlooked = new BoundedMap<string, number>(usersMax);
  return {
    added({ projectId, user }, bytes) {
      if (bytes === 0) return;
      const name = keyText([projectId, user]);
      const before = unlooked.get(name);
      const isDue = before === undefined || before + bytes > unlookedBytes;
      unlooked.set(name, isDue ? 0 : before + bytes);
      if (!isDue) return;
      // Its caller does not wait for it.
      removeOldest(deps, { projectId, user }).catch((error) =>
        deps.log("warn", "kept_turns_not_removed", { projectId, ...errorFields(error) })
      );
    },
  };
}

/** Leaves room for what may be added until the next look. */
async function removeOldest(
  { kv, committer }: Pick<Deps, "kv" | "committer">,
  { projectId, user }: EndUserRef,
): Promise<void> {
  const prefix = keptByUserPrefix(projectId, user);
  const kept: { response: string; bytes: number }[] = [];
  let total = 0;
  for (let after: Key | null = null;;) {
    const rows = await listAfter(kv, prefix, { after, limit: rowsPerRead });
    for (const { key, value } of rows) {
      if (!value) continue;
      const { bytes } = fromBytes<{ bytes: number }>(value);
      kept.push({ response: String(key.at(-1)), bytes });
      total += bytes;
    }
    if (rows.length < rowsPerRead) break;
    after = rows.at(-1)?.key ?? null;
  }
  for (const { response, bytes } of kept) {
    if (total <= keptUserBytesMax - unlookedBytes) return;
    await forgetResponse({ kv, committer }, projectId, response);
    total -= bytes;
  }
}
