import { entryKey, idempotencyPrefix } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { count, judgeAtRest, readOrNull, type Scan, scanRows } from "../store/scan.ts";
import { wholeEntry, wholeIdempotency } from "./verify_records.ts";

const rowsPerRead = 100;

/** All idempotency records: the entry of each exists, and carries its key. */
export function scanIdempotency({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "idempotency",
    kv,
    prefix: idempotencyPrefix,
    rowsPerRead,
    async look(rows, counts) {
      const entries = await kv.getMany(rows.map(entryKeyOf));
      count(counts, "idempotencyRecords", rows.length);
      const faults: string[] = [];
      for (const [at, row] of rows.entries()) {
        if (faultOf(row, entries[at]) === null) continue;
        // A record that names a user who is forgotten moves, in one write with its entry's key.
        faults.push(
          ...await judgeAtRest(kv, { key: row.key, counts }, async (again) => {
            const fault = faultOf(again, await kv.get(entryKeyOf(again)));
            return fault === null ? [] : [fault];
          }),
        );
      }
      return faults;
    },
  });
}

function entryKeyOf({ key, value }: Row) {
  const record = readOrNull(value, wholeIdempotency);
  return entryKey(record?.owner ?? String(key[1]), record?.activityId ?? "");
}

function faultOf({ key, value }: Row, found: Row | undefined): string | null {
  const [, projectId, operation, name] = key;
  const about = `idempotency key ${name} of a ${operation} in ${projectId}`;
  const record = readOrNull(value, wholeIdempotency);
  if (!record) return `${about} cannot be read`;
  const entry = readOrNull(found?.value ?? null, wholeEntry);
  if (!entry) {
    const what = found?.value ? "cannot be read" : "is missing";
    return `${about} names entry ${record.activityId}, which ${what}`;
  }
  const carried = `${entry.kind} with key ${entry.idempotencyKey}`;
  if (carried === `${operation} with key ${name}`) return null;
  return `${about} names entry ${entry.id}, which is a ${carried}`;
}
