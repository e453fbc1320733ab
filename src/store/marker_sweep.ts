import type { Deps } from "../deps.ts";
import { commitMarkersPrefix } from "./keys.ts";
import type { Kv } from "./kv.ts";

const markersPerSweep = 200;
/** Far longer than any write can be under way: no marker is needed any more. */
const markerLifetimeMs = 10 * 60 * 1000;

/**
 * Removes commit markers that dead processes left behind; a bounded part at each call. A marker's
 * age is how long this process has seen it, by a clock that no one sets: removing one too early
 * would let a write that landed be reported as failed.
 */
export function createMarkerSweep(
  { kv, clock, metrics }: Pick<Deps, "clock" | "metrics"> & { kv: Kv },
): () => Promise<void> {
  let seenSince = new Map<string, number>();
  return async () => {
    const now = clock.elapsed();
    const rows = await kv.list({ prefix: commitMarkersPrefix, limit: markersPerSweep });
    seenSince = new Map(rows.map(({ key }) => {
      const id = String(key[1]);
      return [id, seenSince.get(id) ?? now];
    }));
    const old = rows.filter(({ key }) =>
      now - (seenSince.get(String(key[1])) ?? now) > markerLifetimeMs
    );
    if (old.length === 0) return;
    await kv.atomic({ checks: [], sets: [], deletes: old.map(({ key }) => key) });
    metrics.repairs.commit_marker.add(old.length);
  };
}
