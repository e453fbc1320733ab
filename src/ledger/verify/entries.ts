import { entryKinds } from "../../base/entry_kinds.ts";
import { fromBytes } from "../../base/json.ts";
import { entryKey, idempotencyKey } from "../../store/keys.ts";
import type { Kv, Row } from "../../store/kv.ts";
import { countRows, readOrNull, type ScanCounts, verifyAllAtRest } from "../../store/scan.ts";
import type { Entry } from "../entry.ts";
import { keyOperation } from "../key_issuer.ts";
import { parseStoredEntry, parseStoredIdempotency } from "./schemas.ts";

/** Returns which of an owner's entries have an idempotency key without the record of it. */
export async function faultsOfKeys(
  kv: Kv,
  { owner, entries }: { owner: string; entries: readonly Entry[] },
  counts: ScanCounts,
): Promise<string[]> {
  const keyed = entries.filter(isKeyed);
  if (keyed.length === 0) return [];
  countRows(counts, "entriesWithKey", keyed.length);
  const records = await kv.getMany(keyed.map((entry) => recordKeyOf(owner, entry)));
  const suspects = keyed.filter((entry, at) => faultOfRecord(owner, entry, records[at]) !== null);
  // An erased user's keys that name them are removed in one write with their records.
  const keys = suspects.map(({ id }) => entryKey(owner, id));
  return await verifyAllAtRest(kv, { keys, counts }, (rows) => judgeAgain(kv, owner, rows));
}

function isKeyed({ kind, idempotencyKey }: Entry): boolean {
  return idempotencyKey !== null && entryKinds[kind].hasKeyRecord;
}

function recordKeyOf(owner: string, { projectId, kind, idempotencyKey: key, keyIssuer }: Entry) {
  return idempotencyKey(projectId ?? owner, keyOperation(kind, keyIssuer), key ?? "");
}

function faultOfRecord(owner: string, entry: Entry, row: Row | undefined): string | null {
  const record = readOrNull(row?.value ?? null, parseStoredIdempotency);
  const known = record?.activityId ?? "no entry";
  const { id, kind, idempotencyKey: key } = entry;
  if (known === id) return null;
  return `owner ${owner}: entry ${id} has the key ${key}, whose record of a ${kind} names ${known}`;
}

function judgeAgain(kv: Kv, owner: string, rows: readonly Row[]): Promise<string[][]> {
  return Promise.all(rows.map(async ({ value }) => {
    const entry = readOrNull(value, parseStoredEntry);
    if (!entry || !isKeyed(entry)) return [];
    const fault = faultOfRecord(owner, entry, await kv.get(recordKeyOf(owner, entry)));
    return fault === null ? [] : [fault];
  }));
}

/**
 * The fields of an entry that counting needs: whether accounts lead to it depends on nothing else.
 */
type CountedEntry = Pick<Entry, "id" | "createdAt" | "prev" | "projectId" | "user">;

/** Reads as much of an entry as counting needs; null where that is not possible. */
export function readForCount({ value }: Row): CountedEntry | null {
  const entry = readOrNull(value, (bytes) => fromBytes<CountedEntry | null>(bytes));
  return typeof entry?.createdAt === "number" ? entry : null;
}

/** Finds two entries that follow the same one. Where a write was lost, both are near each other. */
export function forksAmong(owner: string, entries: readonly CountedEntry[]): string[] {
  const follows = ({ prev, projectId, user }: CountedEntry) =>
    prev ?? `nothing ${projectId} ${user}`;
  const byPrevious = Map.groupBy(entries, follows);
  return [...byPrevious.values()].filter((group) => group.length > 1).map((group) => {
    const ids = group.map(({ id }) => id).join(" and ");
    return `owner ${owner}: entries ${ids} follow the same entry`;
  });
}
