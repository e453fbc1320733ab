import type { Clock } from "../deps.ts";
import { commitMarkersPrefix } from "./keys.ts";
import type { Kv } from "./kv.ts";
import { decodeTime } from "ulid";

const markersPerSweep = 200;
/** Far longer than any write may be under way, so that no marker is still needed. */
const markerLifetimeMs = 10 * 60 * 1000;

/** Removes commit markers that dead processes left; a bounded part at each call. */
export async function sweepMarkers({ kv, clock }: { kv: Kv; clock: Clock }): Promise<void> {
  const rows = await kv.list({ prefix: commitMarkersPrefix, limit: markersPerSweep });
  const old = rows.filter(({ key }) => {
    const madeAt = decodeTime(String(key[1]).replace(/^batch_/, ""));
    return clock.now() - madeAt > markerLifetimeMs;
  });
  if (old.length === 0) return;
  await kv.atomic({ checks: [], sets: [], deletes: old.map(({ key }) => key) });
}
