import { encodeUtf8 } from "../../base/utf8.ts";
import { deliveryKey, dueKey, freshKey, logKey, readyKey } from "../../store/keys.ts";
import type { Key, Write } from "../../store/kv.ts";
import type { Delivery, DeliveryStatus } from "../schema.ts";
import { encodeDelivery } from "../store.ts";

/** The filters of a listing of the log, besides the status; absent means any. */
export interface LogFilter {
  subscriptionId?: string | undefined;
  eventType?: string | undefined;
}

/** Returns the name of one combination of filters in the index. */
export function filterName(
  { subscriptionId, eventType }: LogFilter,
  status: DeliveryStatus,
): string {
  return `${status} ${subscriptionId ?? "*"} ${eventType ?? "*"}`;
}

/**
 * The precision of ready rows, in ms, so that a busy subscription has one row a second, not
 * thousands.
 */
export const readyGrainMs = 1_000;

/**
 * Returns the time of the ready row that covers a delivery due at `dueMs`: that time or earlier.
 */
export function readyTime(dueMs: number): number {
  return Math.floor(dueMs / readyGrainMs) * readyGrainMs;
}

/**
 * Adds a delivery's new state to the write, with all rows that point to it: in the due queue, and
 * in the log under each combination of filters. `before` is null for a new one.
 */
export function putDelivery(write: Write, before: Delivery | null, after: Delivery): void {
  write.sets.push({ key: deliveryKey(after.projectId, after.id), value: encodeDelivery(after) });
  const old = before ? pointersTo(before) : [];
  const kept = pointersTo(after);
  const have = new Set(old.map(textOf));
  const need = new Set(kept.map(textOf));
  write.sets.push(...kept.filter((row) => !have.has(textOf(row))));
  write.deletes.push(...old.filter((row) => !need.has(textOf(row))).map(({ key }) => key));
  const { subscriptionId, projectId, status, dueAt } = after;
  // An ended delivery may become due again at the exact time at which its last lease would have
  // ended.
  const wasDueThen = before?.status === "pending" && before.dueAt === dueAt;
  if (status !== "pending" || wasDueThen) return;
  const key = readyKey(readyTime(dueAt), subscriptionId);
  write.sets.push({ key, value: encodeUtf8(projectId) });
}

/** Adds the deletion of every row of an ended delivery. */
export function removeDelivery(write: Write, delivery: Delivery): void {
  write.deletes.push(deliveryKey(delivery.projectId, delivery.id));
  write.deletes.push(...pointersTo(delivery).map(({ key }) => key));
}

/** A row that points to a delivery. */
type Pointer = { key: Key; value: Uint8Array };

const nothing = new Uint8Array();
const textOf = ({ key }: Pointer) => key.join(" ");

/**
 * Returns every row that points to a delivery in this state. During the first attempt, in which
 * most deliveries end, a single row replaces its rows in the log: it is pending only briefly.
 */
export function pointersTo(delivery: Delivery): Pointer[] {
  const { projectId, subscriptionId, eventType, id, status, dueAt } = delivery;
  const due = { key: dueKey(subscriptionId, dueAt, id), value: encodeUtf8(projectId) };
  if (isFresh(delivery)) {
    const value = encodeUtf8(`${subscriptionId} ${eventType}`);
    return [due, { key: freshKey(projectId, id), value }];
  }
  const filters = [{}, { subscriptionId }, { eventType }, { subscriptionId, eventType }];
  const log = filters.map((filter) => ({
    key: logKey(projectId, filterName(filter, status), id),
    value: nothing,
  }));
  return status === "pending" ? [due, ...log] : log;
}

function isFresh({ status, lease, claims, attempts }: Delivery): boolean {
  return status === "pending" && lease !== null && claims === 1 && attempts === 0;
}
