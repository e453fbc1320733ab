/** The state of a rate limit. Times in milliseconds. */
export interface RateState {
  limit: number;
  remaining: number;
  /** Until the whole limit is available again. */
  resetMs: number;
  /** Until one more is available; 0 when one is now. */
  waitMs: number;
}

/** The time over which limits are counted. */
export const minuteMs = 60_000;

/**
 * The state of a per-minute limit at `now`, with bursts of one minute's worth. `usedUp` is the only
 * state: the time at which everything taken is available again (generic cell rate algorithm,
 * ITU-T I.371). Tokens that are counted late may move it further than a minute away.
 */
export function rateState(usedUp: number, limit: number, now: number): RateState {
  const resetMs = Math.max(0, usedUp - now);
  const each = minuteMs / limit;
  // Rounding errors must not cost the last one.
  const remaining = Math.max(0, Math.floor((minuteMs - resetMs) / each + 1e-6));
  const waitMs = remaining >= 1 ? 0 : Math.ceil(resetMs + each - minuteMs);
  return { limit, remaining, resetMs, waitMs };
}

/** `usedUp` after taking `count` more. */
export function afterTaking(
  usedUp: number,
  { count, limit, now }: { count: number; limit: number; now: number },
): number {
  return Math.max(usedUp, now) + (count * minuteMs) / limit;
}
