import { errorFields } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { targetHealthPrefix } from "../store/keys.ts";
import { type ExpiringKind, withExpiry } from "../store/expiry.ts";
import { emptyWrite, type Key } from "../store/kv.ts";

/**
 * Rows that say until when a breaker is open. The row of a breaker that has closed is removed at
 * that time.
 */
export const targetHealthRows: ExpiringKind = {
  prefix: targetHealthPrefix,
  endsAt: (value) => fromBytes<number>(value),
};

/** One breaker's opening, which all processes share through a row of the store. */
export class SharedOpening {
  readonly key: Key;
  /**
   * Called when another process has changed the row: with the time in ms since 1970, or null when
   * it was removed.
   */
  readonly onChange: (until: number | null) => void;
  /** When the last read of the row began. */
  readAt = -Infinity;
  /** The time in the stored row, as far as is known; null for no row. */
  stored: number | null = null;
  /** The time that the row is to have; null for no row. */
  wanted: number | null = null;
  /** How many writes this process made: a read that began before one tells nothing new. */
  writes = 0;
  isBusy = false;

  constructor(key: Key, onChange: (until: number | null) => void) {
    this.key = key;
    this.onChange = onChange;
  }
}

/** Shares the openings of breakers between processes. Errors of the store are only logged. */
interface SharedOpenings {
  /** Writes until when a breaker is open, in ms since 1970; null removes the row. */
  publish(opening: SharedOpening, until: number | null): void;
  /**
   * Reads the rows that have not been read for two seconds. Returns a promise to wait for, for a
   * short time, where one of them was never read; else null.
   */
  refresh(openings: readonly SharedOpening[]): Promise<void> | null;
}

const readEveryMs = 2_000;
/** How long a call waits for the first read, in ms. */
const firstReadMs = 250;
const logEveryMs = 60_000;

/** Creates the sharing of one process. */
export function createSharedOpenings(
  { kv, committer, clock, log }: Pick<Deps, "kv" | "committer" | "clock" | "log">,
): SharedOpenings {
  let loggedAt = -Infinity;

  function warn(error: unknown): void {
    const now = clock.elapsed();
    if (now - loggedAt < logEveryMs) return;
    loggedAt = now;
    log("warn", "target_health_not_shared", errorFields(error));
  }

  /** Writes the latest state. At most one write per row is in flight, so they keep their order. */
  async function write(opening: SharedOpening): Promise<void> {
    if (opening.isBusy) return;
    opening.isBusy = true;
    const { key } = opening;
    let written: number | null;
    do {
      written = opening.wanted;
      const change = emptyWrite();
      if (written === null) change.deletes.push(key);
      else change.sets.push(...withExpiry(targetHealthRows, { key, value: toBytes(written) }));
      try {
        await committer.commit(change);
        opening.stored = written;
      } catch (error) {
        warn(error);
      }
      opening.writes++;
    } while (opening.wanted !== written);
    opening.isBusy = false;
  }

  async function read(openings: readonly SharedOpening[]): Promise<void> {
    const writes = openings.map((opening) => opening.writes);
    try {
      const rows = await kv.getMany(openings.map(({ key }) => key));
      for (const [at, opening] of openings.entries()) {
        if (opening.isBusy || opening.writes !== writes[at]) continue;
        const value = rows[at]?.value;
        const until = value ? fromBytes<number>(value) : null;
        if (until === opening.stored) continue;
        opening.stored = until;
        opening.onChange(until);
      }
    } catch (error) {
      warn(error);
    }
  }

  return {
    publish(opening, until) {
      opening.wanted = until;
      void write(opening);
    },
    refresh(openings) {
      const now = clock.elapsed();
      const due = openings.filter(({ readAt }) => now - readAt >= readEveryMs);
      if (due.length === 0) return null;
      const isFirst = due.some(({ readAt }) => readAt === -Infinity);
      for (const opening of due) opening.readAt = now;
      const reading = read(due);
      if (!isFirst) return null;
      return new Promise((resolve) => {
        const cancel = clock.after(firstReadMs, resolve);
        void reading.then(() => {
          cancel();
          resolve();
        });
      });
    },
  };
}
