import { encodeUtf8 } from "../base/utf8.ts";
import { deliveryKey, dueKey, freshKey, logKey, readyKey } from "../store/keys.ts";
import type { Key, Write } from "../store/kv.ts";
import type { Delivery, DeliveryStatus } from "./schema.ts";
import { encodeDelivery } from "./store.ts";

/** What a listing of the log asks for, besides a status; absent means any. */
export interface LogFilter {
  subscriptionId?: string | undefined;
  eventType?: string | undefined;
}

/** The name of one combination of filters in the index. */
export function filterName(
  { subscriptionId, eventType }: LogFilter,
  status: DeliveryStatus,
): string {
  return `${status} ${subscriptionId ?? "*"} ${eventType ?? "*"}`;
}

/** Ready rows stand on whole seconds, so that a busy subscription has one, not thousands. */
export const readyGrainMs = 1_000;

/** The moment of the ready row that covers something due then: never later. */
export function readyTime(dueMs: number): number {
  return Math.floor(dueMs / readyGrainMs) * readyGrainMs;
}

/**
 * Adds a delivery's new state to the write, with all that points to it: its place in the due queue
 * and in the log under each combination of filters. `before` is null for a new one.
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
  // One that had ended may be due again at the very moment that its last lease would have ended.
  const wasDueThen = before?.status === "pending" && before.dueAt === dueAt;
  if (status !== "pending" || wasDueThen) return;
  const key = readyKey(readyTime(dueAt), subscriptionId);
  write.sets.push({ key, value: encodeUtf8(projectId) });
}

/** Adds the deletion of all that there is of an ended delivery. */
export function removeDelivery(write: Write, delivery: Delivery): void {
  write.deletes.push(deliveryKey(delivery.projectId, delivery.id));
  write.deletes.push(...pointersTo(delivery).map(({ key }) => key));
}

/** A row that leads to a delivery. */
export type Pointer = { key: Key; value: Uint8Array };

const nothing = new Uint8Array();
const textOf = ({ key }: Pointer) => key.join(" ");

/**
 * Every row that leads to a delivery in this state. One that is in its first try, where most end,
 * has a single row in place of its rows in the log: it is pending for a moment only.
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
