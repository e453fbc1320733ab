import { holdLifetimeMs } from "../base/limits.ts";
import type { Deps } from "../deps.ts";
import type { Hold } from "./account.ts";

/** Tells whether a hold has ended, so that its money is free, except for what its call has used. */
export type HasEnded = (hold: Pick<Hold, "expiresAt" | "holder">) => boolean;

/**
 * Decides which holds have ended by now: those that nobody renewed in time, by the clock of the
 * process that placed them, and those of a process that is gone. A hold of 0.9.0 names no process;
 * where it lasts longer than any hold, a clock was set. Version 1.1 may drop it.
 */
export function holdsEndedBy(
  { clock, holders }: Pick<Deps, "clock" | "holders">,
  now: number = clock.now(),
): HasEnded {
  return ({ expiresAt, holder }) => {
    if (holder === null) return expiresAt <= now || expiresAt > now + 2 * holdLifetimeMs;
    return expiresAt <= now + holders.aheadMs(holder) || holders.isGone(holder);
  };
}
