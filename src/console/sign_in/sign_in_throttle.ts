import type { Clock } from "../../base/clock.ts";
import { networkOf } from "../../base/client_address.ts";
import { RateTable } from "../../base/rate_table.ts";
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
/** The name under which all are counted. */
const ofAll = "";

/**
 * Counts failures in memory, of this process and, up to a second ago, of the others: keys are too
 * long to be guessed, so this suffices.
 */
export function createSignInThrottle({ elapsed: now }: Pick<Clock, "elapsed">): SignInThrottle {
  const attempts = new RateTable(now);
  const taken = createSharedTakes(now, (name, ms) => attempts.move(name, ms));

  return {
    part: taken,
    take(given) {
      const address = given === null ? null : networkOf(given);
      const limits: [name: string, limit: number][] = [[ofAll, overall]];
      if (address !== null) limits.push([address, perAddress]);
      const waitMs = Math.max(...limits.map(([name, limit]) => attempts.state(name, limit).waitMs));
      if (waitMs > 0) return waitMs;
      for (const [name, limit] of limits) {
        taken.took(name, attempts.take(name, { count: 1, limit }));
      }
      return 0;
    },
  };
}
