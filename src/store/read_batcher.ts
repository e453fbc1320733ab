import { type Key, type Kv, readKeysMax, type Row } from "./kv.ts";

interface Asked {
  keys: readonly Key[];
  resolve: (rows: Row[]) => void;
  reject: (error: unknown) => void;
}

/**
 * A store whose reads go together: what is asked for while a read is under way goes with the next
 * one, as with the group commit. Each call of a store costs as much as reading many rows, and a
 * local one does one thing at a time. What was asked for together is never read further apart than
 * without this. A read waits at most for another's deadline, and then for its own.
 */
export function batchReads(kv: Kv): Kv {
  const waiting: Asked[] = [];
  let running = false;

  function getMany(keys: readonly Key[]): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      waiting.push({ keys, resolve, reject });
      if (!running) drain();
    });
  }

  async function drain(): Promise<void> {
    running = true;
    while (waiting.length > 0) {
      await Promise.all(groupsOf(waiting.splice(0)).map(readTogether));
    }
    running = false;
  }

  async function readTogether(asked: readonly Asked[]): Promise<void> {
    try {
      const rows = await kv.getMany(asked.flatMap(({ keys }) => keys));
      let from = 0;
      for (const { keys, resolve } of asked) resolve(rows.slice(from, from += keys.length));
    } catch (error) {
      for (const { reject } of asked) reject(error);
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

/** As many calls together as one read of the store takes, and no call torn apart. */
function groupsOf(asked: readonly Asked[]): Asked[][] {
  const groups: Asked[][] = [];
  let size = Infinity;
  for (const each of asked) {
    size += each.keys.length;
    if (size > readKeysMax) {
      groups.push([]);
      size = each.keys.length;
    }
    groups.at(-1)?.push(each);
  }
  return groups;
}
