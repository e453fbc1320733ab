import type { Clock } from "../base/clock.ts";
import type { Key, Kv, Row } from "./kv.ts";
import { createPacer } from "./pacer.ts";

/**
 * How long a failing read must take, in ms, to show that the store does not answer. One that fails
 * sooner was refused.
 */
const hungMs = 1_000;

interface PendingRead {
  keys: readonly Key[];
  resolve: (rows: Row[]) => void;
  reject: (error: unknown) => void;
}

/**
 * Combines reads: those requested during a read go together with the next one, as in the group
 * commit. A call of a store costs as much as reading many rows, and a local one does one thing at a
 * time; a far one gets several reads at once. Keys requested together are never read further apart
 * than without this. Where a store does not answer one read, those that wait fail with it.
 */
export function batchReads(kv: Kv, clock: Pick<Clock, "elapsed" | "after">): Kv {
  const { inFlight, readKeys } = kv.limits;
  const waiting: PendingRead[] = [];
  const pacer = createPacer({ inFlight, clock, start });

  function getMany(keys: readonly Key[]): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      waiting.push({ keys, resolve, reject });
      pacer.wake();
    });
  }

  function start(): Promise<void> | null {
    if (waiting.length === 0) return null;
    return Promise.all(groupsOf(waiting.splice(0), readKeys).map(readTogether)).then(() => {});
  }

  async function readTogether(reads: readonly PendingRead[]): Promise<void> {
    const startedAt = clock.elapsed();
    try {
      const rows = await kv.getMany(reads.flatMap(({ keys }) => keys));
      let from = 0;
      for (const { keys, resolve } of reads) resolve(rows.slice(from, from += keys.length));
    } catch (error) {
      const hangs = clock.elapsed() - startedAt > hungMs;
      for (const { reject } of hangs ? [...reads, ...waiting.splice(0)] : reads) reject(error);
    }
  }

  return {
    ...kv,
    getMany,
    async get(key) {
      const [row] = await getMany([key]);
      return row ?? { key, value: null, version: null };
    },
  };
}

/** Groups requests into reads of at most `readKeys` keys. A request is never split. */
function groupsOf(reads: readonly PendingRead[], readKeys: number): PendingRead[][] {
  const groups: PendingRead[][] = [];
  let size = Infinity;
  for (const each of reads) {
    size += each.keys.length;
    if (size > readKeys) {
      groups.push([]);
      size = each.keys.length;
    }
    groups.at(-1)?.push(each);
  }
  return groups;
}
