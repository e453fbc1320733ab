import type { Deps } from "../deps.ts";
import type { Peers } from "./peers.ts";

/** Notices clocks that were set, or that differ between the processes of a store. */
export interface ClockWatch {
  /** Looks now, and logs each difference once. Returns whether this process's clock was set. */
  look(): boolean;
  /** What is wrong now, as sentences. */
  warnings(): string[];
}

/** A clock is corrected by less than that in passing. */
const setByMinMs = 5_000;

/** Creates the watch of one process. */
export function createClockWatch(
  { clock, log }: Pick<Deps, "clock" | "log">,
  peers: Pick<Peers, "differing">,
): ClockWatch {
  const offset = () => clock.now() - clock.elapsed();
  let lastOffset = offset();
  let known = new Map<string, number>();

  return {
    look() {
      const setByMs = Math.round(offset() - lastOffset);
      lastOffset += setByMs;
      if (Math.abs(setByMs) >= setByMinMs) log("warn", "clock_set", { byMs: setByMs });
      const before = known;
      known = new Map(peers.differing());
      for (const [process, aheadMs] of known) {
        if (Math.abs(aheadMs - (before.get(process) ?? 0)) < setByMinMs) continue;
        log("warn", "clocks_differ", { process, aheadMs });
      }
      return Math.abs(setByMs) >= setByMinMs;
    },
    warnings: () =>
      peers.differing().map(([process, aheadMs]) =>
        `The clock of process ${process} is ${Math.abs(Math.round(aheadMs / 1000))} s ` +
        `${aheadMs > 0 ? "ahead of" : "behind"} this one's.`
      ),
  };
}
