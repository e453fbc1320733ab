import { errorFields } from "../base/errors.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { targetHealthPrefix } from "../store/keys.ts";
import { type ExpiringKind, withExpiry } from "../store/expiry.ts";
import { emptyWrite, type Key } from "../store/kv.ts";

/** Until when breakers are open. What said so of one that has closed is removed at that time. */
export const targetHealthRows: ExpiringKind = {
  prefix: targetHealthPrefix,
  endsAt: (value) => fromBytes<number>(value),
};

/** Until when one breaker is open, as the store has it for all processes. */
export class SharedOpening {
  readonly key: Key;
  /** Told of what other processes have written: in ms since 1970; null when it was removed. */
  readonly onChange: (until: number | null) => void;
  /** When its last read began. */
  readAt = -Infinity;
  /** What the store has, as far as is known. */
  stored: number | null = null;
  /** What it shall have. */
  wanted: number | null = null;
  /** Writes of this process: a read from before one tells nothing new. */
  writes = 0;
  isBusy = false;

  constructor(key: Key, onChange: (until: number | null) => void) {
    this.key = key;
    this.onChange = onChange;
  }
}

/** What processes tell each other of their breakers. Errors of the store are only logged. */
interface SharedOpenings {
  /** Writes until when a breaker is open, in ms since 1970; null removes the row. */
  publish(opening: SharedOpening, until: number | null): void;
  /**
   * Reads those that have not been read for two seconds. Returns what to wait for where one of them
   * was never read, for a short time; else null.
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

  /** Writes what is wanted last; one write of a row at a time, so that they keep their order. */
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
