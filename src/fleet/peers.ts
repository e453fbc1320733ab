import { BoundedMap } from "../base/bounded_map.ts";

/** A process whose row has not changed for so long is taken for dead. */
export const deadAfterMs = 6_000;
/** Clocks agree that differ by less: a row is read some time after it was written. */
const agreeWithinMs = 5_000;
/** What was written between two readings is as old as these are apart, at most. */
const freshWithinMs = 2_000;
/** The most ids that are remembered as gone, and that are asked for between two reads. */
const idsMax = 1_000;

interface Peer {
  /** The time in its row, which each sign of life changes; the version where it has none. */
  sign: number | string | null;
  /** When that was first seen, by a clock that no one sets. */
  seenAt: number;
  /** For how long this process has watched it stay the same. */
  watchedMs: number;
  /** By how many ms the process's clock was ahead when it last changed. */
  aheadMs: number;
}

/** The row of another process, as it was read. */
export interface PeerRow {
  id: string;
  version: string | null;
  /** When it was written, by the process's own clock; null where it does not say. */
  at: number | null;
}

/** One reading of all rows of processes. */
export interface Reading {
  /** Those of the others. */
  rows: readonly PeerRow[];
  /** Whether no row was left out. */
  isWhole: boolean;
  /** When it began, by the clock that no one sets and by the other one. */
  elapsed: number;
  now: number;
}

/**
 * What one process knows of the others of its store, by their rows. A process counts as alive for
 * some seconds after its last sign of life. It is gone, so that what it held may be taken, only
 * where its row was watched without a change: time in which this process could not read does not
 * count, since a store that stalls keeps the others from writing too.
 */
export class Peers {
  readonly #watchStepMs: number;
  #peers = new Map<string, Peer>();
  readonly #gone = new BoundedMap<string, true>(idsMax);
  /** Ids without a row that somebody asked for since the last reading began. */
  #asked = new Set<string>();
  #readAt = -Infinity;

  /** `watchStepMs`: how much time between two readings counts as watched, at most. */
  constructor(watchStepMs: number) {
    this.#watchStepMs = watchStepMs;
  }

  /**
   * Begins a reading; the returned function takes its result. Returns whether somebody is gone who
   * was not before.
   */
  beginReading(): (reading: Reading) => boolean {
    const asked = this.#asked;
    this.#asked = new Set();
    return ({ rows, isWhole, elapsed, now }) => {
      const sinceMs = elapsed - this.#readAt;
      const stepMs = Math.min(sinceMs, this.#watchStepMs);
      this.#readAt = elapsed;
      const before = this.#peers;
      this.#peers = new Map(rows.map(({ id, version, at }) => {
        const known = before.get(id);
        const sign = at ?? version;
        if (known?.sign === sign) {
          return [id, { ...known, watchedMs: known.watchedMs + stepMs }];
        }
        // A row that has just changed tells what its writer's clock shows now.
        const isFresh = known !== undefined && at !== null && sinceMs <= freshWithinMs;
        const aheadMs = isFresh ? at - now : known?.aheadMs ?? 0;
        return [id, { sign, seenAt: elapsed, watchedMs: 0, aheadMs }];
      }));
      let isNews = false;
      for (const [id, peer] of this.#peers) {
        this.#gone.delete(id);
        isNews ||= this.isGone(id) && peer.watchedMs - stepMs < deadAfterMs;
      }
      // Whoever holds something has a row before: without one, its process has ended.
      for (const id of isWhole ? [...before.keys(), ...asked] : []) {
        if (this.#peers.has(id) || this.#gone.has(id)) continue;
        this.#gone.set(id, true);
        isNews = true;
      }
      return isNews;
    };
  }

  /** Whether its row has changed lately. */
  isAlive(id: string, elapsed: number): boolean {
    const peer = this.#peers.get(id);
    return peer !== undefined && elapsed - peer.seenAt < deadAfterMs;
  }

  /** For how long its row has not changed, in ms. */
  silentMs(id: string, elapsed: number): number {
    return elapsed - (this.#peers.get(id)?.seenAt ?? elapsed);
  }

  /** Whether the process has ended. Of an id that was never seen, the next reading tells. */
  isGone(id: string): boolean {
    const peer = this.#peers.get(id);
    if (peer) return peer.watchedMs >= deadAfterMs;
    if (this.#gone.has(id)) return true;
    if (this.#asked.size < idsMax) this.#asked.add(id);
    return false;
  }

  /** By how many ms the clock of a process is ahead; 0 where it agrees, or nothing is known. */
  aheadMs(id: string): number {
    const ms = this.#peers.get(id)?.aheadMs ?? 0;
    return Math.abs(ms) < agreeWithinMs ? 0 : ms;
  }

  /** The processes whose clocks differ, and by how many ms they are ahead. */
  differing(): [id: string, aheadMs: number][] {
    return [...this.#peers.keys()].map((id): [string, number] => [id, this.aheadMs(id)])
      .filter(([, ms]) => ms !== 0);
  }
}
