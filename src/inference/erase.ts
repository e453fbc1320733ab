import type { Deps } from "../deps.ts";
import { beatEveryMs, readTold } from "../fleet/fleet.ts";
import type { Eraser } from "../store/erase.ts";
import { processesPrefix } from "../store/keys.ts";
import type { RefusalReports } from "./refusal_reports.ts";
import { readToldCalls, runningCallsPart } from "./running.ts";

const processesMax = 200;

/**
 * Erases a user from what processes have in memory, and from what they tell each other. Refusals
 * that wait for the end of their minute are emitted and written now, by every process. The row of a
 * process that died may name its last calls: the erasure waits until it is removed.
 */
export function createCallErasers(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  refusalReports: RefusalReports,
): Eraser[] {
  return [
    {
      name: "refusals",
      async page() {
        await refusalReports.flushEverywhere();
        // The others hear of it at their next beat.
        if (kv.limits.isShared) await clock.sleep(4 * beatEveryMs);
        return { erased: 0, next: null };
      },
    },
    {
      name: "processes",
      async page({ projectId, user }) {
        if (!kv.limits.isShared) return { erased: 0, next: null };
        const rows = await kv.list({ prefix: processesPrefix, limit: processesMax });
        const waiting = rows.flatMap((row) => readToldCalls(readTold(row, runningCallsPart)))
          .some((call) => call.projectId === projectId && call.view.user === user);
        return { erased: 0, next: null, waiting };
      },
    },
  ];
}
