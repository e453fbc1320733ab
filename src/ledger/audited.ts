import type { Deps } from "../deps.ts";
import { auditRow, type By } from "../projects/audit.ts";
import type { Draft } from "./draft.ts";
import { amountOf, type Entry } from "./entry.ts";

/** Writes the row of the audit trail together with an entry that somebody booked by hand. */
export function audited(
  deps: Pick<Deps, "id" | "clock">,
  { by, action, reason = null }: { by: By; action: string; reason?: string | null },
): (draft: Draft, entry: Entry) => void {
  return (draft, entry) => {
    const { user, id, refundedActivityId } = entry;
    const detail = {
      activityId: id,
      amount: amountOf(entry),
      ...(refundedActivityId === null ? {} : { refundedActivityId }),
      ...(reason === null ? {} : { reason }),
    };
    const { project } = draft.snapshot;
    const { key, value } = auditRow(deps, project.id, { by, action, target: user, detail });
    draft.put(key, value);
  };
}
