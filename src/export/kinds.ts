import { entryExportColumns } from "../ledger/activities.ts";
import type { JsonObject } from "../base/json.ts";

/** What can be exported. */
export const exportKinds = ["entries", "users", "events", "deliveries", "audit"] as const;
/** A kind of records that can be exported. */
export type ExportKind = typeof exportKinds[number];

/** The columns of its CSV: fields of the records, and fields of those. */
export const exportColumns: Readonly<Record<ExportKind, readonly string[]>> = {
  entries: entryExportColumns,
  users: [
    "user",
    "currency",
    "balance",
    "held",
    "available",
    "entries",
    "lastActivityId",
    "authorization.status",
    "authorization.dailyCap",
  ],
  events: [
    "id",
    "createdAt",
    "type",
    "version",
    "trigger.source",
    "trigger.actorType",
    "trigger.actorId",
    "subject.type",
    "subject.id",
    "subject.externalId",
    "data",
    "metadata",
  ],
  deliveries: [
    "id",
    "createdAt",
    "subscriptionId",
    "eventId",
    "eventType",
    "status",
    "attempts",
    "lastAttemptAt",
    "nextRetryAt",
    "responseCode",
    "responseLatencyMs",
    "error",
    "updatedAt",
  ],
  audit: [
    "id",
    "at",
    "action",
    "target",
    "actor.type",
    "actor.id",
    "actor.suffix",
    "via",
    "detail",
  ],
};

/** Returns a record's position: given as `after`, the export continues after it. */
export function exportPosition(kind: ExportKind, { user, wallet, id }: JsonObject): string {
  if (kind === "users") return String(user);
  return typeof wallet === "string" ? `${wallet}/${id}` : String(id);
}
