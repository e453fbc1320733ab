import { keyText } from "../store/batch.ts";
import { deliveriesPrefix, dueKey, freshKey, logKey } from "../store/keys.ts";
import type { Key, Kv, Row } from "../store/kv.ts";
import { count, judgeAtRest, readOrNull, type Scan, scanRows } from "../store/scan.ts";
import { filterName, pointersTo } from "./delivery_rows.ts";
import type { Delivery, DeliveryStatus } from "./schema.ts";
import { decodeDelivery } from "./store.ts";

const rowsPerRead = 20;
const statuses: readonly DeliveryStatus[] = ["pending", "success", "error"];

/** All deliveries: the rows that lead to each are those of its state, and no others. */
export function scanDeliveries({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "deliveries",
    kv,
    prefix: deliveriesPrefix,
    rowsPerRead,
    async look(rows, counts) {
      count(counts, "deliveries", rows.length);
      const found = await Promise.all(rows.map(async (row) => {
        if ((await faultsOfDelivery(kv, row)).length === 0) return [];
        return await judgeAtRest(
          kv,
          { key: row.key, counts },
          (again) => faultsOfDelivery(kv, again),
        );
      }));
      return found.flat();
    },
  });
}

async function faultsOfDelivery(kv: Kv, { key, value }: Row): Promise<string[]> {
  const delivery = readOrNull(value, decodeDelivery);
  const about = `delivery ${key[2]} of ${key[1]}`;
  if (!delivery) return [`${about} cannot be read`];
  const needed = new Set(pointersTo(delivery).map((pointer) => keyText(pointer.key)));
  const rows = await kv.getMany(everyKeyOf(delivery));
  return rows.flatMap((row) => {
    const isNeeded = needed.has(keyText(row.key));
    if (isNeeded === (row.value !== null)) return [];
    const what = isNeeded ? "has no row" : "should not have the row";
    return [`${about} is ${delivery.status} and ${what} ${row.key.join(" ")}`];
  });
}

/** Every key that leads, or once led, to a delivery; of due rows only the one for its time. */
function everyKeyOf(delivery: Delivery): Key[] {
  const { projectId, subscriptionId, eventType, id, dueAt } = delivery;
  const filters = [{}, { subscriptionId }, { eventType }, { subscriptionId, eventType }];
  const logs = statuses.flatMap((status) =>
    filters.map((filter) => logKey(projectId, filterName(filter, status), id))
  );
  return [...logs, freshKey(projectId, id), dueKey(subscriptionId, dueAt, id)];
}
