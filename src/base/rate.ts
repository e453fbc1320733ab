/** How a rate stands: what is left at once, and when. Times in milliseconds. */
export interface RateState {
  limit: number;
  remaining: number;
  /** Until all of it is there again. */
  resetMs: number;
  /** Until there is one more; 0 when there is one now. */
  waitMs: number;
}

const minuteMs = 60_000;

/**
 * How a rate of so many a minute stands at `now`, with bursts of a minute's worth. `usedUp` is all
 * that is kept: the time at which what was taken will be there again (the generic cell rate
 * algorithm, ITU-T I.371). What was taken late may have put it further off than a minute.
 */
export function rateState(usedUp: number, limit: number, now: number): RateState {
  const resetMs = Math.max(0, usedUp - now);
  const each = minuteMs / limit;
  // What floating point adds must not cost the last one.
  const remaining = Math.max(0, Math.floor((minuteMs - resetMs) / each + 1e-6));
  const waitMs = remaining >= 1 ? 0 : Math.ceil(resetMs + each - minuteMs);
  return { limit, remaining, resetMs, waitMs };
}

/** `usedUp` after `count` more were taken. */
export function afterTaking(
  usedUp: number,
  { count, limit, now }: { count: number; limit: number; now: number },
): number {
  return Math.max(usedUp, now) + (count * minuteMs) / limit;
}
