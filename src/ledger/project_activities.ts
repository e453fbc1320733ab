import { csvLine } from "../base/csv.ts";
import { badCursor } from "../base/errors.ts";
import { firstIdAt, isId, timeOfId } from "../base/ids.ts";
import { containsUtf8 } from "../base/utf8.ts";
import type { Project } from "../projects/schema.ts";
import { ownEntriesPrefix } from "../store/keys.ts";
import type { Key, Kv } from "../store/kv.ts";
import { absoluteAmount, actorOf, type Entry, entryReason } from "./entry.ts";
import { decodeEntry } from "./store.ts";

/** An entry of any of a project's users. */
export interface ProjectActivity {
  entry: Entry;
}

/** Some activities of a project, newest first. */
interface ProjectActivityPage {
  activities: ProjectActivity[];
  /** The cursor of the next page; null at the end. */
  nextCursor: string | null;
  /**
   * The time back to which the page has looked, in ms, where it stopped before it was full; else
   * null.
   */
  searchedTo: number | null;
}

/** The most entries that one page reads. */
const rowsMax = 2_000;
const rowsPerRead = 500;

/**
 * Lists the entries of all users, newest first by their ids: in the order in which they began.
 * Empty in the shared mode, where entries belong to wallets. Throws 400 for a cursor that is none.
 */
export async function listProjectActivities(
  kv: Kv,
  { id: projectId, mode }: Project,
  { limit, cursor, kind, from, to }: {
    limit: number;
    cursor?: string | undefined;
    kind: string | null;
    /** In milliseconds since 1970; null for no bound. */
    from: number | null;
    /** Exclusive. */
    to: number | null;
  },
): Promise<ProjectActivityPage> {
  const activities: ProjectActivity[] = [];
  const ended = { activities, nextCursor: null, searchedTo: null };
  if (cursor !== undefined && !isId("act", cursor)) throw badCursor();
  if (mode !== "default") return ended;
  const prefix = ownEntriesPrefix(projectId);
  const start: Key = [...prefix, from === null ? "" : firstIdAt("act", from)];
  let last = cursor ?? (to === null ? "~" : firstIdAt("act", to));
  for (let read = 0; read < rowsMax; read += rowsPerRead) {
    if (last <= String(start.at(-1))) return ended;
    const limitNow = kind === null ? Math.min(rowsPerRead, limit + 1) : rowsPerRead;
    const rows = await kv.list({
      prefix,
      start,
      end: [...prefix, last],
      reverse: true,
      limit: limitNow,
    });
    for (const { key, value } of rows) {
      // Most entries need not be parsed.
      const mayMatch = value && (kind === null || containsUtf8(value, JSON.stringify(kind)));
      const entry = mayMatch && decodeEntry(value);
      if (!entry || (kind !== null && entry.kind !== kind)) continue;
      if (activities.length === limit) return { activities, nextCursor: last, searchedTo: null };
      activities.push({ entry });
      last = String(key.at(-1));
    }
    if (rows.length < limitNow) return ended;
    last = String(rows.at(-1)?.key.at(-1));
    if (activities.length === limit) return { activities, nextCursor: last, searchedTo: null };
  }
  return { activities, nextCursor: last, searchedTo: timeOfId(last) };
}

/** The columns of a project's activities as CSV. */
export const activityCsvColumns = [
  ...["id", "createdAt", "kind", "user", "amount", "delta", "currency", "balanceAfter", "model"],
  ...["reason", "actorType", "actorId"],
];

/** Activities as lines of CSV. */
export function activityLines(
  activities: readonly ProjectActivity[],
  currency: string,
): string {
  return activities.map(({ entry }) => {
    const actor = actorOf(entry);
    return csvLine([
      ...[entry.id, new Date(entry.createdAt).toISOString(), entry.kind, entry.user],
      ...[absoluteAmount(entry), entry.delta, currency, entry.balanceAfter],
      ...[entry.usage?.model ?? null, entryReason(entry), actor?.type ?? null, actor?.id ?? null],
    ]);
  }).join("");
}
