import type { Clock } from "../base/clock.ts";
import { keyText } from "./batch.ts";
import type { StoreCounter } from "./commit_meter.ts";
import { allRowWaitersPrefix, commitMarkersPrefix, rowTurnsPrefix } from "./keys.ts";
import type { Key, Kv } from "./kv.ts";
import { pagesUnder } from "./scan.ts";

interface StaleRows {
  prefix: Key;
  /** How long a row must not have changed to be removed, in ms. */
  unchangedMs: number;
  onRemoved?: (count: number) => void;
}

interface SweepDeps {
  kv: Kv;
  clock: Pick<Clock, "elapsed">;
  metrics: { repairs: { commit_marker: StoreCounter } };
}

const rowsPerRead = 200;
/** After how long a commit marker is removed, in ms: far longer than any write can be under way. */
const markerLifetimeMs = 10 * 60 * 1000;
/** After how long a turn is removed, in ms: far longer than any turn or wait. */
const turnLifetimeMs = 60 * 1000;

/**
 * Removes commit markers that dead processes left behind; each left at most a few. Removing one too
 * early would let a write that landed be reported as failed.
 */
export function createMarkerSweep(deps: SweepDeps): () => Promise<void> {
  return sweepStale(deps, {
    prefix: commitMarkersPrefix,
    unchangedMs: markerLifetimeMs,
    onRemoved: (count) => deps.metrics.repairs.commit_marker.add(count),
  });
}

/** Removes the turns of rows for which no processes contend any more. */
export function createTurnSweep(deps: SweepDeps): () => Promise<void> {
  const sweeps = [rowTurnsPrefix, allRowWaitersPrefix].map((prefix) =>
    sweepStale(deps, { prefix, unchangedMs: turnLifetimeMs })
  );
  return async () => {
    for (const sweep of sweeps) await sweep();
  };
}

/**
 * Removes rows that this process has seen unchanged for long enough, by a clock that no one sets.
 */
function sweepStale(
  { kv, clock }: SweepDeps,
  { prefix, unchangedMs, onRemoved }: StaleRows,
): () => Promise<void> {
  let seenSince = new Map<string, number>();
  return async () => {
    const now = clock.elapsed();
    const before = seenSince;
    seenSince = new Map();
    for await (const rows of pagesUnder(kv, prefix, rowsPerRead)) {
      const old: Key[] = [];
      for (const { key, version } of rows) {
        const name = keyText([...key, version ?? ""]);
        const since = before.get(name) ?? now;
        if (now - since > unchangedMs) old.push(key);
        else seenSince.set(name, since);
      }
      if (old.length === 0) continue;
      await kv.atomic({ checks: [], sets: [], deletes: old });
      onRemoved?.(old.length);
    }
  };
}
