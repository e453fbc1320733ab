import { deliveryKey, dueKey, logKey, readyKey } from "../store/keys.ts";
import type { Write } from "../store/kv.ts";
import type { Delivery } from "./schema.ts";
import { encodeDelivery } from "./store.ts";

/** What a listing of the log asks for; absent means any. */
export interface LogFilter {
  subscriptionId?: string | undefined;
  eventType?: string | undefined;
  status?: string | undefined;
}

/** The name of one combination of filters in the index. */
export function filterName({ subscriptionId, eventType, status }: LogFilter): string {
  return `${subscriptionId ?? "*"} ${eventType ?? "*"} ${status ?? "*"}`;
}

/** Ready rows stand on whole seconds, so that a busy subscription has one, not thousands. */
const readyGrainMs = 1_000;
const nothing = new Uint8Array();

/** The moment of the ready row that covers something due then: never later. */
export function readyTime(dueMs: number): number {
  return Math.floor(dueMs / readyGrainMs) * readyGrainMs;
}

/**
 * Adds a delivery's new state to the write, with all that points to it: its place in the due queue
 * and in the log under each combination of filters. `before` is null for a new one.
 */
export function putDelivery(write: Write, before: Delivery | null, after: Delivery): void {
  const { projectId, subscriptionId, id } = after;
  write.sets.push({ key: deliveryKey(projectId, id), value: encodeDelivery(after) });
  const dueBefore = before?.status === "pending" ? before.dueAt : null;
  const dueAfter = after.status === "pending" ? after.dueAt : null;
  if (dueBefore !== dueAfter) {
    if (dueBefore !== null) write.deletes.push(dueKey(subscriptionId, dueBefore, id));
    if (dueAfter !== null) putDue(write, after, dueAfter);
  }
  if (before?.status === after.status) return;
  for (const filter of combinations(after)) {
    if (before === null) {
      write.sets.push({ key: logKey(projectId, filterName(filter), id), value: nothing });
    }
    const { status } = after;
    const named = filterName({ ...filter, status });
    write.sets.push({ key: logKey(projectId, named, id), value: nothing });
    if (before === null) continue;
    const gone = filterName({ ...filter, status: before.status });
    write.deletes.push(logKey(projectId, gone, id));
  }
}

/** Adds the deletion of all that there is of an ended delivery. */
export function removeDelivery(write: Write, delivery: Delivery): void {
  const { projectId, id, status } = delivery;
  write.deletes.push(deliveryKey(projectId, id));
  for (const filter of combinations(delivery)) {
    write.deletes.push(logKey(projectId, filterName(filter), id));
    write.deletes.push(logKey(projectId, filterName({ ...filter, status }), id));
  }
}

function putDue(write: Write, { projectId, subscriptionId, id }: Delivery, dueMs: number): void {
  const value = new TextEncoder().encode(projectId);
  write.sets.push({ key: dueKey(subscriptionId, dueMs, id), value });
  write.sets.push({ key: readyKey(readyTime(dueMs), subscriptionId), value });
}

/** Each combination of the filters besides the status. */
function combinations({ subscriptionId, eventType }: Delivery): LogFilter[] {
  return [{}, { subscriptionId }, { eventType }, { subscriptionId, eventType }];
}
