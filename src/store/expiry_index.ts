import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { commitUnlessMoved } from "./erase.ts";
import { type ExpiringKind, expiryKeyOf } from "./expiry.ts";
import { expiryIndexedKey, oldReplayDuePrefix } from "./keys.ts";
import { emptyWrite, type Key, type Row } from "./kv.ts";
import { listAfter, readOrNull } from "./scan.ts";

/** How often all rows were looked at, and when last, in milliseconds since 1970. */
interface Indexed {
  passes: number;
  at: number;
}

/**
 * One pass at the first start, and one when no process of 0.9.0 that ran beside it writes any more.
 */
const passesMax = 2;
const secondPassAfterMs = 24 * 60 * 60 * 1000;
const rowsPerRead = 100;

/**
 * Creates the work that gives rows of 0.9.0 their end, which that version did not write. Each call
 * looks at rows until it is late; the next one continues. Once it is complete it does nothing.
 * Version 1.1 may drop it.
 */
export function createExpiryIndexing(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
  kinds: readonly ExpiringKind[],
): (isLate: () => boolean) => Promise<void> {
  let isComplete = false;
  /** The kinds that the running pass has not looked at yet, and its place in the first of them. */
  let left: ExpiringKind[] | null = null;
  let after: Key | null = null;

  async function addEnd(kind: ExpiringKind, row: Row): Promise<void> {
    const { key, value } = row;
    const isReadable = value && readOrNull(value, kind.endsAt) !== null;
    const end = isReadable ? expiryKeyOf(kind, { key, value }) : null;
    if (!end) return;
    // A row that has changed was written with its end, or its user is erased.
    await commitUnlessMoved(committer, row, {
      sets: [{ key: end, value: new Uint8Array() }],
      deletes: [],
    });
  }

  /** Looks at the next rows of a kind; false once there are no more. */
  async function goOn(kind: ExpiringKind): Promise<boolean> {
    const rows = await listAfter(kv, kind.prefix, { after, limit: rowsPerRead });
    await Promise.all(rows.map((row) => addEnd(kind, row)));
    after = rows.length < rowsPerRead ? null : rows.at(-1)?.key ?? null;
    return after !== null;
  }

  /** Removes the old index of one kind; false once it is empty. */
  async function removeOldIndex(): Promise<boolean> {
    const rows = await kv.list({ prefix: oldReplayDuePrefix, limit: rowsPerRead });
    if (rows.length === 0) return false;
    await committer.commit({ ...emptyWrite(), deletes: rows.map(({ key }) => key) });
    return true;
  }

  return async (isLate) => {
    if (isComplete) return;
    const row = await kv.get(expiryIndexedKey);
    const { passes, at } = row.value ? fromBytes<Indexed>(row.value) : { passes: 0, at: 0 };
    isComplete = passes >= passesMax;
    if (isComplete || (passes > 0 && clock.now() - at < secondPassAfterMs)) return;
    left ??= [...kinds];
    for (let [kind] = left; kind; [kind] = left) {
      while (await goOn(kind)) if (isLate()) return;
      left.shift();
      if (isLate()) return;
    }
    while (await removeOldIndex()) if (isLate()) return;
    left = null;
    const indexed: Indexed = { passes: passes + 1, at: clock.now() };
    const sets = [{ key: expiryIndexedKey, value: toBytes(indexed) }];
    await commitUnlessMoved(committer, row, { sets, deletes: [] });
  };
}
