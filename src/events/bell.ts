import type { Committer } from "../store/commit.ts";
import { isOutboxKey } from "../store/keys.ts";
import type { Key } from "../store/kv.ts";

/** An outbox row that has just landed, with the version to check when it is taken away. */
export interface LandedRow {
  key: Key;
  value: Uint8Array;
  version: string;
}

/** A committer that tells one listener of every outbox row that lands through it. */
export interface Bell {
  committer: Committer;
  /** Who wants to know; before that nobody is told, and the rows wait in the store. */
  listen(wake: (rows: LandedRow[]) => void): void;
}

/** Saves the dispatcher from asking: the store stays the truth, and finds what is not told. */
export function createBell(inner: Committer): Bell {
  let wake = (_: LandedRow[]) => {};
  const committer: Committer = {
    stats: inner.stats,
    idle: () => inner.idle(),
    async commit(write) {
      const version = await inner.commit(write);
      if (version === null) return null;
      const rows = write.sets.filter(({ key }) => isOutboxKey(key));
      if (rows.length > 0) wake(rows.map(({ key, value }) => ({ key, value, version })));
      return version;
    },
  };
  return { committer, listen: (listener) => void (wake = listener) };
}
