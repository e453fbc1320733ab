import { deliveriesPrefix } from "../store/keys.ts";
import type { Key, Kv, Row } from "../store/kv.ts";
import { count, judgeAtRest, readOrNull, type Scan, scanRows } from "../store/scan.ts";
import { pointersTo } from "./delivery_rows.ts";
import { decodeDelivery } from "./store.ts";

const rowsPerRead = 50;

/** All deliveries: every row is there that is to lead to each. Rows too many are found from theirs. */
export function scanDeliveries({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "deliveries",
    kv,
    prefix: deliveriesPrefix,
    rowsPerRead,
    async look(rows, counts) {
      count(counts, "deliveries", rows.length);
      const keys = rows.map(keysTo);
      const found = await kv.getMany(keys.flatMap((own) => own ?? []));
      const faults: string[] = [];
      for (const [at, row] of rows.entries()) {
        const own = found.splice(0, keys[at]?.length ?? 0);
        if (keys[at] && own.every(({ value }) => value !== null)) continue;
        const judge = (again: Row) => faultsOfDelivery(kv, again);
        faults.push(...await judgeAtRest(kv, { key: row.key, counts }, judge));
      }
      return faults;
    },
  });
}

/** Null for a delivery that cannot be read. */
function keysTo({ value }: Row): Key[] | null {
  const delivery = readOrNull(value, decodeDelivery);
  return delivery && pointersTo(delivery).map(({ key }) => key);
}

async function faultsOfDelivery(kv: Kv, row: Row): Promise<string[]> {
  const about = `delivery ${row.key[2]} of ${row.key[1]}`;
  const delivery = readOrNull(row.value, decodeDelivery);
  if (!delivery) return [`${about} cannot be read`];
  const rows = await kv.getMany(keysTo(row) ?? []);
  return rows.filter(({ value }) => value === null)
    .map(({ key }) => `${about} is ${delivery.status} and has no row ${key.join(" ")}`);
}
