import type { Deps } from "../deps.ts";
import { commitMarkersPrefix } from "./keys.ts";
import type { Kv } from "./kv.ts";
import { timeOfId } from "../base/ids.ts";

const markersPerSweep = 200;
/** Far longer than any write may be under way, so that no marker is still needed. */
const markerLifetimeMs = 10 * 60 * 1000;

/** Removes commit markers that dead processes left; a bounded part at each call. */
export async function sweepMarkers(
  { kv, clock, meter }: Pick<Deps, "clock" | "meter"> & { kv: Kv },
): Promise<void> {
  const rows = await kv.list({ prefix: commitMarkersPrefix, limit: markersPerSweep });
  const old = rows.filter(({ key }) => {
    return clock.now() - timeOfId(String(key[1])) > markerLifetimeMs;
  });
  if (old.length === 0) return;
  await kv.atomic({ checks: [], sets: [], deletes: old.map(({ key }) => key) });
  meter.repairs.commit_marker.add(old.length);
}
