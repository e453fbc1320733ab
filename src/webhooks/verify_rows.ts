import { decodeUtf8 } from "../base/utf8.ts";
import type { Clock } from "../deps.ts";
import { keyText } from "../store/batch.ts";
import { allDuePrefix, allFreshPrefix, allLogsPrefix, deliveryKey } from "../store/keys.ts";
import type { Key, Kv, Row } from "../store/kv.ts";
import { count, type Counts, judgeAtRest, readOrNull, type Scan, scanRows } from "../store/scan.ts";
import { pointersTo, readyTime } from "./delivery_rows.ts";
import { decodeDelivery, listReady, readReady } from "./store.ts";

const rowsPerRead = 100;
/** A subscription whose breaker is open is looked at that much later, at the most. */
const readyGraceMs = 11 * 60 * 1000;
const readyPerRead = 500;

/** All rows that lead to deliveries: each leads to one in the state that it stands for. */
export function scanPointers({ kv, clock }: { kv: Kv; clock: Clock }): Scan[] {
  const rowsOf = (name: string, prefix: Key, of: (row: Row) => Key): Scan =>
    scanRows({
      name,
      kv,
      prefix,
      rowsPerRead,
      async look(rows, counts) {
        count(counts, name, rows.length);
        const strays = await straysAmong(kv, rows, { of, counts });
        return name === "dueRows"
          ? [...strays, ...await uncovered(kv, rows, { now: clock.now(), counts })]
          : strays;
      },
    });
  return [
    rowsOf(
      "dueRows",
      allDuePrefix,
      ({ key, value }) => deliveryKey(value ? decodeUtf8(value) ?? "" : "", String(key[3])),
    ),
    rowsOf("freshRows", allFreshPrefix, ({ key }) => deliveryKey(String(key[1]), String(key[2]))),
    rowsOf("logRows", allLogsPrefix, ({ key }) => deliveryKey(String(key[1]), String(key[3]))),
  ];
}

/** Rows that should not be there, on a second look too. */
async function straysAmong(
  kv: Kv,
  rows: readonly Row[],
  { of: deliveryOf, counts }: { of: (row: Row) => Key; counts: Counts },
): Promise<string[]> {
  const deliveries = await kv.getMany(rows.map(deliveryOf));
  const suspects = rows.filter((row, at) => faultsOfRow(row, deliveries[at]?.value).length > 0);
  const found = await Promise.all(suspects.map((row) =>
    // The row and its delivery only move together.
    judgeAtRest(kv, { key: row.key, counts }, async (again) => {
      const { value } = await kv.get(deliveryOf(again));
      return faultsOfRow(again, value);
    })
  ));
  return found.flat();
}

function faultsOfRow({ key }: Row, value: Uint8Array | null | undefined): string[] {
  const delivery = readOrNull(value ?? null, decodeDelivery);
  if (!delivery) return [`row ${key.join(" ")} leads to a delivery that is not there`];
  if (pointersTo(delivery).some((pointer) => keyText(pointer.key) === keyText(key))) return [];
  return [`row ${key.join(" ")} leads to a delivery that is ${delivery.status} otherwise`];
}

/** Due rows that no ready row would ever lead the dispatcher to; of each subscription the first. */
async function uncovered(
  kv: Kv,
  rows: readonly Row[],
  { now, counts }: { now: number; counts: Counts },
): Promise<string[]> {
  const firsts = Map.groupBy(rows, ({ key }) => String(key[1])).values()
    .flatMap((own) => own.slice(0, 1));
  const found = await Promise.all(firsts.map(async (row) => {
    if (await isCovered(kv, row, now)) return [];
    return await judgeAtRest(kv, { key: row.key, counts }, async (again) => {
      if (await isCovered(kv, again, now)) return [];
      return [`row ${again.key.join(" ")} is due, and no ready row is as early`];
    });
  }));
  return found.flat();
}

async function isCovered(kv: Kv, { key }: Row, now: number): Promise<boolean> {
  const [subscriptionId, dueAt] = [String(key[1]), Number(key[2])];
  if (await readReady(kv, subscriptionId, readyTime(dueAt))) return true;
  const until = Math.max(dueAt, now + readyGraceMs);
  // Ready rows are only ever moved on in time, so going on in time meets them.
  for (let after: Key | null = null;;) {
    const ready = await listReady(kv, { now: until, limit: readyPerRead, after });
    if (ready.some((row) => row.subscriptionId === subscriptionId)) return true;
    const last = ready.at(-1);
    if (!last || ready.length < readyPerRead) return false;
    after = last.key;
  }
}
