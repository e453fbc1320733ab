import { keyText } from "../store/batch.ts";
import { holdingPrefix } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { count, readOrNull, type Scan, scanRows } from "../store/scan.ts";
import { holdingKeyOf } from "./store.ts";
import { wholeHolding } from "./verify_records.ts";

const rowsPerRead = 100;

/** All rows that lead the sweep to accounts which may hold money: each to the one of its key. */
export function scanHolding({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "holding",
    kv,
    prefix: holdingPrefix,
    rowsPerRead,
    look(rows, counts) {
      count(counts, "holdingRows", rows.length);
      return Promise.resolve(rows.flatMap(faultsOf));
    },
  });
}

function faultsOf({ key, value }: Row): string[] {
  const ref = readOrNull(value, wholeHolding);
  if (!ref) return [`row ${key.join(" ")} cannot be read`];
  const named = holdingKeyOf(ref);
  if (keyText(named) === keyText(key)) return [];
  return [`row ${key.join(" ")} leads the sweep to ${named.slice(1).join(" ")}`];
}
