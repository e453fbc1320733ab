import { keyText } from "../../store/batch.ts";
import { entryKey, holdingPrefix, idempotencyPrefix } from "../../store/keys.ts";
import type { Kv, Row } from "../../store/kv.ts";
import { countRows, readOrNull, type Scan, scanRows, verifyAtRest } from "../../store/scan.ts";
import { keyOperation } from "../key_issuer.ts";
import { holdIndexKey } from "../store.ts";
import { parseHoldIndexRow, parseStoredEntry, parseStoredIdempotency } from "./schemas.ts";

const holdRowsPerRead = 100;

/** Verifies the hold index: each row names the account of its key. */
export function scanHoldIndex({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "holding",
    kv,
    prefix: holdingPrefix,
    rowsPerRead: holdRowsPerRead,
    look(rows, counts) {
      countRows(counts, "holdingRows", rows.length);
      return Promise.resolve(rows.flatMap(faultsOf));
    },
  });
}

function faultsOf({ key, value }: Row): string[] {
  const ref = readOrNull(value, parseHoldIndexRow);
  if (!ref) return [`row ${key.join(" ")} cannot be read`];
  const named = holdIndexKey(ref);
  if (keyText(named) === keyText(key)) return [];
  return [`row ${key.join(" ")} of the hold index names ${named.slice(1).join(" ")}`];
}

const keysPerRead = 100;

/** Verifies all idempotency records: the entry of each exists and carries its key. */
export function scanIdempotency({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "idempotency",
    kv,
    prefix: idempotencyPrefix,
    rowsPerRead: keysPerRead,
    async look(rows, counts) {
      const entries = await kv.getMany(rows.map(entryKeyOf));
      countRows(counts, "idempotencyRecords", rows.length);
      const faults: string[] = [];
      for (const [at, row] of rows.entries()) {
        if (faultOf(row, entries[at]) === null) continue;
        // A record that names an erased user moves in one write with its entry's key.
        faults.push(
          ...await verifyAtRest(kv, { key: row.key, counts }, async (again) => {
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
  const record = readOrNull(value, parseStoredIdempotency);
  return entryKey(record?.owner ?? String(key[1]), record?.activityId ?? "");
}

function faultOf({ key, value }: Row, found: Row | undefined): string | null {
  const [, projectId, operation, name] = key;
  const about = `idempotency key ${name} of a ${operation} in ${projectId}`;
  const record = readOrNull(value, parseStoredIdempotency);
  if (!record) return `${about} cannot be read`;
  const entry = readOrNull(found?.value ?? null, parseStoredEntry);
  if (!entry) {
    const what = found?.value ? "cannot be read" : "is missing";
    return `${about} names entry ${record.activityId}, which ${what}`;
  }
  const carried = `${keyOperation(entry.kind, entry.keyIssuer)} with key ${entry.idempotencyKey}`;
  if (carried === `${operation} with key ${name}`) return null;
  return `${about} names entry ${entry.id}, which is a ${carried}`;
}
