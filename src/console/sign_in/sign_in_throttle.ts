import type { Clock } from "../../base/clock.ts";
import { networkOf } from "../../base/client_address.ts";
import { afterTaking, minuteMs, rateState } from "../../base/rate.ts";
import type { FleetPart } from "../../fleet/fleet.ts";
import { createSharedTakes } from "../../fleet/shared_takes.ts";

/** Limits failed attempts to sign in. */
export interface SignInThrottle {
  /**
   * Counts an attempt from an address; returns 0, or how long to wait in ms, and then it is not
   * counted.
   */
  take(address: string | null): number;
  /** What the processes tell each other of attempts. */
  part: FleetPart;
}

/** Attempts per minute: of one address, or network of IPv6, and of all together. */
const perAddress = 10;
const overall = 300;
const addressesMax = 10_000;

/**
 * Counts failures in memory, of this process and, up to a second ago, of the others: keys are too
 * long to be guessed, so this suffices.
 */
export function createSignInThrottle({ elapsed: now }: Pick<Clock, "elapsed">): SignInThrottle {
  const usedUp = new Map<string, number>();
  let allUsedUp = 0;

  function forgetOld(): void {
    for (const [address, until] of usedUp) if (until <= now()) usedUp.delete(address);
    // So many addresses at once are an attack, which the limit over all bounds.
    if (usedUp.size >= addressesMax) usedUp.clear();
  }

  function put(address: string, until: number): void {
    if (usedUp.size >= addressesMax) forgetOld();
    usedUp.set(address, until);
  }

  const taken = createSharedTakes(now, (name, ms) => {
    if (name === "") allUsedUp = Math.max(allUsedUp, now()) + ms;
    else put(name, Math.max(usedUp.get(name) ?? 0, now()) + ms);
  });

  return {
    part: taken,
    take(given) {
      const address = given === null ? null : networkOf(given);
      const own = address === null ? 0 : usedUp.get(address) ?? 0;
      const waitMs = Math.max(
        rateState(own, perAddress, now()).waitMs,
        rateState(allUsedUp, overall, now()).waitMs,
      );
      if (waitMs > 0) return waitMs;
      allUsedUp = afterTaking(allUsedUp, { count: 1, limit: overall, now: now() });
      taken.took("", minuteMs / overall);
      if (address === null) return 0;
      put(address, afterTaking(own, { count: 1, limit: perAddress, now: now() }));
      taken.took(address, minuteMs / perAddress);
      return 0;
    },
  };
}
