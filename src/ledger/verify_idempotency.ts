import { entryKey, idempotencyPrefix } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import { count, readOrNull, type Scan, scanRows } from "../store/scan.ts";
import { decodeEntry, decodeIdempotency } from "./store.ts";

const rowsPerRead = 100;

/** All idempotency records: the entry of each exists, and carries its key. */
export function scanIdempotency({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "idempotency",
    kv,
    prefix: idempotencyPrefix,
    rowsPerRead,
    async look(rows, counts) {
      const records = rows.map(({ key, value }) => ({
        key,
        record: readOrNull(value, decodeIdempotency),
      }));
      const entries = await kv.getMany(
        records.map(({ key, record }) =>
          entryKey(record?.owner ?? String(key[1]), record?.activityId ?? "")
        ),
      );
      count(counts, "idempotencyRecords", records.length);
      return records.flatMap(({ key: [, projectId, operation, key], record }, at) => {
        const entry = readOrNull(entries[at]?.value ?? null, decodeEntry);
        const about = `idempotency key ${key} of a ${operation} in ${projectId}`;
        if (!entry) return [`${about} names entry ${record?.activityId}, which is missing`];
        const carried = `${entry.kind} with key ${entry.idempotencyKey}`;
        if (carried === `${operation} with key ${key}`) return [];
        return [`${about} names entry ${entry.id}, which is a ${carried}`];
      });
    },
  });
}
