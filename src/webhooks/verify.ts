import type { Clock } from "../base/clock.ts";
import type { Key, Kv, Row } from "../store/kv.ts";
import {
  countRows,
  readOrNull,
  type Scan,
  type ScanCounts,
  scanRows,
  verifyAtRest,
} from "../store/scan.ts";
import {
  allDuePrefix,
  allFreshPrefix,
  allLogsPrefix,
  deliveriesPrefix,
  deliveryKey,
  eventKey,
  outboxPrefix,
} from "../store/keys.ts";
import { pointersTo, readyTime } from "./delivery/delivery_rows.ts";
import { decodeDelivery, listReady, readReady } from "./store.ts";
import { timeOfId } from "../base/ids.ts";
import { decodeOutbox } from "../events/outbox.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import { keyText } from "../store/batch.ts";

/**
 * Verifies everything that webhooks store: the outbox, deliveries, and every row that points to
 * one.
 */
export function scanWebhooks(deps: { kv: Kv; clock: Clock }): Scan[] {
  return [scanOutbox(deps), scanDeliveries(deps), ...scanPointers(deps)];
}

const rowsPerRead = 50;

/**
 * Verifies all deliveries: each has all the rows that should point to it. Extra rows are found by
 * the scans of those rows.
 */
function scanDeliveries({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "deliveries",
    kv,
    prefix: deliveriesPrefix,
    rowsPerRead,
    async look(rows, counts) {
      countRows(counts, "deliveries", rows.length);
      const keys = rows.map(keysTo);
      const found = await kv.getMany(keys.flatMap((own) => own ?? []));
      const faults: string[] = [];
      for (const [at, row] of rows.entries()) {
        const own = found.splice(0, keys[at]?.length ?? 0);
        if (keys[at] && own.every(({ value }) => value !== null)) continue;
        const judge = (again: Row) => faultsOfDelivery(kv, again);
        faults.push(...await verifyAtRest(kv, { key: row.key, counts }, judge));
      }
      return faults;
    },
  });
}

/** Returns the keys of all rows that should point to a delivery; null where it cannot be read. */
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
    .map(({ key }) => `${about} is ${delivery.status}, but has no row ${key.join(" ")}`);
}

const outboxRowsPerRead = 100;
/**
 * How old an outbox row may be, in ms. Rows are processed within seconds, or, where a dead process
 * left them, at the next start.
 */
const outboxAgeMaxMs = 2 * 60 * 1000;

/**
 * Verifies all events whose deliveries are not written yet: each is stored, and has not waited for
 * long.
 */
function scanOutbox({ kv, clock }: { kv: Kv; clock: Clock }): Scan {
  async function faultsOf({ key, value }: Row): Promise<string[]> {
    const id = String(key[1]);
    const row = readOrNull(value, decodeOutbox);
    const about = `outbox row ${id}`;
    if (!row) return [`${about} cannot be read`];
    const faults: string[] = [];
    const ageMs = clock.now() - timeOfId(id);
    if (ageMs > outboxAgeMaxMs) {
      faults.push(`${about} has waited for ${Math.round(ageMs / 1000)} s`);
    }
    const event = await kv.get(eventKey(row.projectId, id));
    if (!event.value) faults.push(`${about} names an event that is not stored`);
    return faults;
  }

  return scanRows({
    name: "outbox",
    kv,
    prefix: outboxPrefix,
    rowsPerRead: outboxRowsPerRead,
    async look(rows, counts) {
      countRows(counts, "outboxRows", rows.length);
      const found = await Promise.all(
        rows.map((row) => verifyAtRest(kv, { key: row.key, counts }, faultsOf)),
      );
      return found.flat();
    },
  });
}

const pointersPerRead = 100;
/**
 * How late a due delivery may be, in ms: the longest delay of a subscription whose breaker is open.
 */
const readyGraceMs = 11 * 60 * 1000;
const readyPerRead = 500;

/** Verifies all rows that point to deliveries: each names one in the state that it stands for. */
function scanPointers({ kv, clock }: { kv: Kv; clock: Clock }): Scan[] {
  const rowsOf = (name: string, prefix: Key, of: (row: Row) => Key): Scan =>
    scanRows({
      name,
      kv,
      prefix,
      rowsPerRead: pointersPerRead,
      async look(rows, counts) {
        countRows(counts, name, rows.length);
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

/** Returns rows that should not exist, on a second read too. */
async function straysAmong(
  kv: Kv,
  rows: readonly Row[],
  { of: deliveryOf, counts }: { of: (row: Row) => Key; counts: ScanCounts },
): Promise<string[]> {
  const deliveries = await kv.getMany(rows.map(deliveryOf));
  const suspects = rows.filter((row, at) => faultsOfRow(row, deliveries[at]?.value).length > 0);
  const found = await Promise.all(suspects.map((row) =>
    // The row and its delivery only change together.
    verifyAtRest(kv, { key: row.key, counts }, async (again) => {
      const { value } = await kv.get(deliveryOf(again));
      return faultsOfRow(again, value);
    })
  ));
  return found.flat();
}

function faultsOfRow({ key }: Row, value: Uint8Array | null | undefined): string[] {
  const delivery = readOrNull(value ?? null, decodeDelivery);
  if (!delivery) return [`row ${key.join(" ")} names a delivery that is not stored`];
  if (pointersTo(delivery).some((pointer) => keyText(pointer.key) === keyText(key))) return [];
  return [`row ${key.join(" ")} names a delivery that is ${delivery.status} otherwise`];
}

/** Finds due rows that no ready row leads the dispatcher to; the first of each subscription. */
async function uncovered(
  kv: Kv,
  rows: readonly Row[],
  { now, counts }: { now: number; counts: ScanCounts },
): Promise<string[]> {
  const firsts = Map.groupBy(rows, ({ key }) => String(key[1])).values()
    .flatMap((own) => own.slice(0, 1));
  const found = await Promise.all(firsts.map(async (row) => {
    if (await isCovered(kv, row, now)) return [];
    return await verifyAtRest(kv, { key: row.key, counts }, async (again) => {
      if (await isCovered(kv, again, now)) return [];
      return [`row ${again.key.join(" ")} is due, but no ready row is as early`];
    });
  }));
  return found.flat();
}

async function isCovered(kv: Kv, { key }: Row, now: number): Promise<boolean> {
  const [subscriptionId, dueAt] = [String(key[1]), Number(key[2])];
  if (await readReady(kv, subscriptionId, readyTime(dueAt))) return true;
  const until = Math.max(dueAt, now + readyGraceMs);
  // Ready rows only move to later times, so a walk in order of time meets them.
  for (let after: Key | null = null;;) {
    const ready = await listReady(kv, { now: until, limit: readyPerRead, after });
    if (ready.some((row) => row.subscriptionId === subscriptionId)) return true;
    const last = ready.at(-1);
    if (!last || ready.length < readyPerRead) return false;
    after = last.key;
  }
}
