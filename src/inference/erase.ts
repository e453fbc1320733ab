import type { Deps } from "../deps.ts";
import { beatEveryMs } from "../fleet/fleet.ts";
import type { Eraser } from "../store/erase.ts";
import type { RefusalReports } from "./admit/refusal_reports.ts";

/**
 * Erases a user from what processes have in memory: refusals that wait for the end of their minute
 * are emitted and written now, by every process.
 */
export function createRefusalEraser(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  refusalReports: Pick<RefusalReports, "flushEverywhere">,
): Eraser {
  return {
    name: "refusals",
    async page() {
      await refusalReports.flushEverywhere();
      // The others hear of it at their next beat.
      if (kv.limits.isShared) await clock.sleep(4 * beatEveryMs);
      return { erased: 0, next: null };
    },
  };
}
