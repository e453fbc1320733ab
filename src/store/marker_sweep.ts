import type { Deps } from "../deps.ts";
import { commitMarkersPrefix } from "./keys.ts";
import type { Kv } from "./kv.ts";

const markersPerSweep = 200;
/** Far longer than any write may be under way, so that no marker is still needed. */
const markerLifetimeMs = 10 * 60 * 1000;

/**
 * Removes commit markers that dead processes left; a bounded part at each call. A marker's age is
 * how long it was seen here, by the clock that nobody sets: one that went too early would let a
 * write that has landed be told as one that has not.
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
