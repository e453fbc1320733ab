/**
 * Whether what began at `since` and lasts for `lengthMs` goes on at `now`, all in ms. Where `since`
 * is further ahead than that, a clock was set, and it is over.
 */
export function isGoingOn(since: number, lengthMs: number, now: number): boolean {
  return Math.abs(now - since) < lengthMs;
}
