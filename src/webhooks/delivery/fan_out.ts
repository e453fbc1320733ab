import { errorFields } from "../../base/errors.ts";
import { firstIdAt } from "../../base/ids.ts";
import { toBytes } from "../../base/json.ts";
import type { Deps } from "../../deps.ts";
import type { PendingEvent } from "../../events/outbox_notifier.ts";
import type { OutboxRow } from "../../events/outbox.ts";
import { deliveryKey, outboxKey } from "../../store/keys.ts";
import { emptyWrite } from "../../store/kv.ts";
import { leaseMs } from "./lease.ts";
import { leasedDelivery, newDelivery } from "./delivery.ts";
import {
  type DeliverySlots,
  type Endpoint,
  type LeasedDelivery,
  storedDelivery,
} from "./endpoint.ts";
import { putDelivery } from "./delivery_rows.ts";
import type { Delivery } from "../schema.ts";

/** Turns events into deliveries. */
interface FanOut {
  /**
   * Delivers an event that this process has just committed. For a single subscription nothing is
   * written before the first attempt: the event's outbox row protects it until its result, or for a
   * second at most. If the commit took long, another process may have started it, so the event is
   * leased first.
   */
  takeUp(event: PendingEvent): Promise<void>;
  /**
   * Writes an event's deliveries and deletes its outbox row. Harmless when another process has done
   * so. Throws when the store does not answer: the row stays.
   */
  expand(event: PendingEvent): Promise<void>;
}

/**
 * The most deliveries in one atomic write. An event with more continues from its row, which is its
 * cursor.
 */
const fanOutMax = 16;
/** How long a first attempt may run before its delivery is written, in ms. */
export const unwrittenMaxMs = 1_000;
/**
 * The age from which any process may take an outbox row, in ms: `unwrittenMaxMs`, and time to
 * write.
 */
export const outboxGraceMs = 3_000;

interface ExpansionDeps {
  slots: DeliverySlots;
  start(leased: LeasedDelivery): void;
  /** Called when deliveries have been queued. */
  onQueued(): void;
}

/**
 * A new delivery, and where it waits: it has a slot, or waits leased in this process's memory, or
 * in the store.
 */
interface Placed {
  endpoint: Endpoint;
  delivery: Delivery;
  where: "slot" | "queue" | "store";
}

/**
 * Creates the fan-out. Where the endpoint has a free slot, a delivery is leased as it is created,
 * and sent at once.
 */
export function createFanOut(
  deps: Deps,
  { slots, start, onQueued }: ExpansionDeps,
): FanOut {
  const { committer, clock, config, log, holders } = deps;

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
      leasedDelivery(fresh, holders.own, now + leaseMs(config.webhooks.timeoutMs));
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

  /** Starts a delivery without a write; if the attempt lasts, the delivery is written after all. */
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
          ...errorFields(error),
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
    // Otherwise another process has started it: the result of this attempt will not count.
    if (version === null) return;
    held.row = { key: deliveryKey(delivery.projectId, delivery.id), version };
    held.isWritten = true;
  }

  /** Performs one write and returns the rest of the event, or null at its end. */
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
      begin(each, storedDelivery({ endpoint, delivery, eventText: text }, landed));
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
      const announced = holders.announce();
      if (announced) await announced;
      for (let left: PendingEvent | null = event; left;) left = await expandPart(left);
    },
  };
  return expansion;
}
