import type { Deps } from "../deps.ts";
import { beatEveryMs, readTold, retold } from "../fleet/fleet.ts";
import { commitUnlessMoved, type Eraser, type Erasure } from "../store/erase.ts";
import { processesPrefix } from "../store/keys.ts";
import type { RefusalReports } from "./admit/refusal_reports.ts";
import { runningCallsPart, withoutCallsOf } from "./running.ts";

const processesMax = 200;

/**
 * Erases a user from what processes have in memory, and from what they tell each other. Refusals
 * that wait for the end of their minute are emitted and written now, by every process. What a
 * process has told of the user's calls is taken out of its row; one that is alive and still runs
 * such a call tells of it again, and the erasure waits for its end.
 */
export function createCallErasers(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
  refusalReports: RefusalReports,
): Eraser[] {
  /** Returns how many processes had told of the user. */
  async function takeOut(erasure: Erasure): Promise<number> {
    const rows = await kv.list({ prefix: processesPrefix, limit: processesMax });
    const changes = rows.flatMap((row) => {
      const told = withoutCallsOf(readTold(row, runningCallsPart), erasure);
      return told ? [{ row, value: retold(row, runningCallsPart, told) }] : [];
    });
    await Promise.all(
      changes.map(({ row, value }) =>
        commitUnlessMoved(committer, row, { sets: [{ key: row.key, value }], deletes: [] })
      ),
    );
    return changes.length;
  }

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
      async page(erasure) {
        const nothing = { erased: 0, next: null };
        if (!kv.limits.isShared || await takeOut(erasure) === 0) return nothing;
        // Whoever still runs such a call has told of it by then, be it only as a sign of life.
        await clock.sleep(5 * beatEveryMs);
        return { ...nothing, waiting: await takeOut(erasure) > 0 };
      },
    },
  ];
}
