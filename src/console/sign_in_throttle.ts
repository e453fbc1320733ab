import { afterTaking, rateState } from "../base/rate.ts";
import type { Clock } from "../base/clock.ts";

/** Limits failed attempts to sign in. */
export interface SignInThrottle {
  /**
   * Counts an attempt from an address; returns 0, or how long to wait in ms, and then it is not
   * counted.
   */
  take(address: string | null): number;
}

/** Attempts per minute: of one address, and of all together. */
const perAddress = 10;
const overall = 300;
const addressesMax = 10_000;

/**
 * Counts failures of this process, in memory: keys are too long to be guessed, so this suffices.
 */
export function createSignInThrottle({ elapsed: now }: Pick<Clock, "elapsed">): SignInThrottle {
  const usedUp = new Map<string, number>();
  let allUsedUp = 0;

  function forgetOld(): void {
    for (const [address, until] of usedUp) if (until <= now()) usedUp.delete(address);
    // So many addresses at once are an attack, which the limit over all bounds.
    if (usedUp.size >= addressesMax) usedUp.clear();
  }

  return {
    take(address) {
      const own = address === null ? 0 : usedUp.get(address) ?? 0;
      const waitMs = Math.max(
        rateState(own, perAddress, now()).waitMs,
        rateState(allUsedUp, overall, now()).waitMs,
      );
      if (waitMs > 0) return waitMs;
      allUsedUp = afterTaking(allUsedUp, { count: 1, limit: overall, now: now() });
      if (address === null) return 0;
      if (usedUp.size >= addressesMax) forgetOld();
      usedUp.set(address, afterTaking(own, { count: 1, limit: perAddress, now: now() }));
      return 0;
    },
  };
}
