import { loggedFault } from "../base/errors.ts";
import { firstIdAt } from "../base/ids.ts";
import { toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { PendingEvent } from "../events/outbox_notifier.ts";
import type { OutboxRow } from "../events/outbox.ts";
import { deliveryKey, outboxKey } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import { leaseMs } from "./lease.ts";
import { leasedDelivery, newDelivery } from "./delivery.ts";
import { type DeliverySlots, type Endpoint, isWritten, type LeasedDelivery } from "./endpoint.ts";
import { putDelivery } from "./delivery_rows.ts";
import type { Delivery } from "./schema.ts";

/** Turns events into deliveries. */
export interface FanOut {
  /**
   * For an event that this process has just committed. One for a single subscription goes out with
   * nothing written: its outbox row holds it until its result, or for a second at the most. Where
   * its commit took long, another process may have taken it up, and it is claimed first.
   */
  takeUp(event: PendingEvent): Promise<void>;
  /**
   * Writes an event's deliveries and takes its outbox row away. Harmless when another has done it.
   * Throws when the store does not answer: the row stays.
   */
  expand(event: PendingEvent): Promise<void>;
}

/** Deliveries in one atomic write; a wider event goes on from the row, which is its cursor. */
const fanOutMax = 16;
/** How long a first try may last before its delivery is written down. */
export const unwrittenMaxMs = 1_000;
/** From this age on an outbox row is nobody's: that second, and time to write. */
export const outboxGraceMs = 3_000;

interface ExpansionDeps {
  slots: DeliverySlots;
  start(claimed: LeasedDelivery): void;
  /** Deliveries have been put into queues. */
  onQueued(): void;
}

/** Where a new delivery waits: nowhere, in this process's memory under a lease, in the store. */
interface Placed {
  endpoint: Endpoint;
  delivery: Delivery;
  where: "slot" | "queue" | "store";
}

/**
 * Where the endpoint has a slot free, a delivery is claimed as it is made, and goes out at once.
 */
export function createFanOut(
  deps: Deps,
  { slots, start, onQueued }: ExpansionDeps,
): FanOut {
  const { committer, clock, config, log } = deps;

  function place(event: PendingEvent, named: OutboxRow["deliveries"][number]): Placed {
    const { projectId, eventType, eventVersion } = event.row;
    const endpoint = slots.of(projectId, named.subscriptionId);
    const now = clock.now();
    const fresh = newDelivery({
      ...named,
      projectId,
      eventId: event.id,
      eventType,
      eventVersion,
    }, now);
    const leased = () =>
      leasedDelivery(fresh, deps.id("lease"), now + leaseMs(config.webhooks.timeoutMs));
    if (endpoint.queue.length === 0 && slots.freeForNew(endpoint, now) > 0) {
      slots.take(endpoint);
      return { endpoint, delivery: leased(), where: "slot" };
    }
    if (!slots.hasRoom(endpoint, now)) return { endpoint, delivery: fresh, where: "store" };
    endpoint.queueing++;
    return { endpoint, delivery: leased(), where: "queue" };
  }

  function begin({ endpoint, where }: Placed, held: LeasedDelivery): void {
    if (where === "slot") return start(held);
    endpoint.queueing--;
    slots.enqueue(held);
  }

  function giveBack({ endpoint, where }: Placed): void {
    if (where === "slot") slots.release(endpoint);
    if (where === "queue") endpoint.queueing--;
  }

  /** Takes a delivery up without a write; one that lasts is written after all. */
  function hold(event: PendingEvent, { endpoint, delivery }: Placed): LeasedDelivery {
    const held: LeasedDelivery = {
      endpoint,
      delivery,
      eventText: event.text,
      row: { key: outboxKey(event.id), version: event.version },
      isWritten: false,
      mayBegin: () => writing.then(() => !isLost),
      settled() {
        cancel();
        return writing;
      },
    };
    let writing = Promise.resolve();
    let isLost = false;
    const cancel = clock.after(unwrittenMaxMs, () => {
      writing = writeDown(held).then(() => void (isLost = !held.isWritten), (error) => {
        isLost = true;
        log("error", "webhook_work_failed", {
          delivery: delivery.id,
          eventId: event.id,
          ...loggedFault(error),
        });
      });
    });
    return held;
  }

  async function writeDown(held: LeasedDelivery): Promise<void> {
    const { row, delivery } = held;
    const write = emptyWrite();
    write.checks.push(row);
    write.deletes.push(row.key);
    putDelivery(write, null, delivery);
    const version = await committer.commit(write);
    // Otherwise another has taken it up: what comes of this try will not count.
    if (version === null) return;
    held.row = { key: deliveryKey(delivery.projectId, delivery.id), version };
    held.isWritten = true;
  }

  /** One write: what is left of the event, or null at its end. */
  async function expandPart(event: PendingEvent): Promise<PendingEvent | null> {
    const { id, text, row, version } = event;
    const placed = row.deliveries.slice(0, fanOutMax).map((named) => place(event, named));
    const left = row.deliveries.slice(fanOutMax);
    const rest: OutboxRow | null = left.length > 0 ? { ...row, deliveries: left } : null;
    const write = emptyWrite();
    const key = outboxKey(id);
    write.checks.push({ key, version });
    if (rest) write.sets.push({ key, value: toBytes(rest) });
    else write.deletes.push(key);
    for (const { delivery } of placed) putDelivery(write, null, delivery);
    const landed = await committer.commit(write).catch((error) => {
      placed.forEach(giveBack);
      throw error;
    });
    if (landed === null) {
      placed.forEach(giveBack);
      return null;
    }
    for (const each of placed) {
      const { endpoint, delivery, where } = each;
      if (where === "store") {
        slots.setBacklog(endpoint, true);
        continue;
      }
      begin(each, isWritten({ endpoint, delivery, eventText: text }, landed));
    }
    onQueued();
    return rest && { id, text, row: rest, version: landed };
  }

  const expansion: FanOut = {
    async takeUp(event) {
      const [only, another] = event.row.deliveries;
      const isOurs = event.id >= firstIdAt("evt", clock.now() - unwrittenMaxMs);
      const placed = only && !another && isOurs ? place(event, only) : null;
      if (!placed || placed.where === "store") return await expansion.expand(event);
      begin(placed, hold(event, placed));
      onQueued();
    },
    async expand(event) {
      for (let left: PendingEvent | null = event; left;) left = await expandPart(left);
    },
  };
  return expansion;
}
