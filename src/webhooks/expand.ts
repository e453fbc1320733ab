import { toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { LandedRow } from "../events/bell.ts";
import type { Event } from "../events/event.ts";
import { eventKey } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import { leaseMs } from "./claim.ts";
import { claimed, newDelivery } from "./delivery.ts";
import type { Claimed, Endpoint, Slots } from "./endpoint.ts";
import { putDelivery } from "./delivery_rows.ts";
import type { Delivery } from "./schema.ts";
import { decodeOutbox } from "./store.ts";

/** Turns outbox rows into deliveries. */
export interface Expansion {
  /** Harmless when another has done it. Throws when the store does not answer: the row stays. */
  expand(row: LandedRow): Promise<void>;
}

/** Deliveries in one atomic write; a wider event goes on from the row, which is its cursor. */
const fanOutMax = 16;
/** Events that this process has taken up last. */
const remembered = 10_000;

interface ExpansionRooms {
  slots: Slots;
  start(claimed: Claimed): void;
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
 * Writes an event's deliveries and takes its row away, in one write. Where the endpoint has a slot
 * free, the delivery is claimed in the same write and goes out at once.
 */
export function createExpansion(
  deps: Deps,
  { slots, start, onQueued }: ExpansionRooms,
): Expansion {
  const { committer, clock, config } = deps;
  // A poll may have listed a row before it was taken away: a second try would fail its whole batch.
  const begun = new Set<string>();

  function begin(name: string): void {
    begun.add(name);
    if (begun.size <= remembered) return;
    for (const oldest of begun) {
      begun.delete(oldest);
      break;
    }
  }

  function place(event: Event, subscriptionId: string): Placed {
    const endpoint = slots.of(event.paywallId, subscriptionId);
    const now = clock.now();
    const fresh = newDelivery({
      id: deps.id("dly"),
      projectId: event.paywallId,
      subscriptionId,
      eventId: event.id,
      eventType: event.type,
      eventVersion: event.version,
    }, now);
    const leased = () => claimed(fresh, deps.id("lease"), now + leaseMs(config.webhooks.timeoutMs));
    if (endpoint.queue.length === 0 && slots.freeForNew(endpoint, now) > 0) {
      slots.take(endpoint);
      return { endpoint, delivery: leased(), where: "slot" };
    }
    if (!slots.hasRoom(endpoint, now)) return { endpoint, delivery: fresh, where: "store" };
    endpoint.queueing++;
    return { endpoint, delivery: leased(), where: "queue" };
  }

  /** One write: the version of what is left of the row, or null at its end. */
  async function expandPart({ key, value, version }: LandedRow): Promise<LandedRow | null> {
    const { event, subscriptionIds } = decodeOutbox(value);
    const eventText = JSON.stringify(event);
    const placed = subscriptionIds.slice(0, fanOutMax).map((id) => place(event, id));
    const rest = subscriptionIds.length > fanOutMax
      ? toBytes({ event, subscriptionIds: subscriptionIds.slice(fanOutMax) })
      : null;
    const write = emptyWrite();
    write.checks.push({ key, version });
    if (rest) write.sets.push({ key, value: rest });
    else write.deletes.push(key);
    write.sets.push({
      key: eventKey(event.paywallId, event.id),
      value: new TextEncoder().encode(eventText),
    });
    for (const { delivery } of placed) putDelivery(write, null, delivery);
    const landed = await committer.commit(write).catch((error) => {
      placed.forEach(giveBack);
      throw error;
    });
    if (landed === null) {
      placed.forEach(giveBack);
      return null;
    }
    for (const { endpoint, delivery, where } of placed) {
      const held = { endpoint, delivery, version: landed, eventText };
      if (where === "slot") start(held);
      else if (where === "store") slots.setHungry(endpoint, true);
      else {
        endpoint.queueing--;
        slots.enqueue(held);
      }
    }
    onQueued();
    return rest && { key, value: rest, version: landed };
  }

  function giveBack({ endpoint, where }: Placed): void {
    if (where === "slot") slots.release(endpoint);
    if (where === "queue") endpoint.queueing--;
  }

  return {
    async expand(row) {
      const name = String(row.key[1]);
      if (begun.has(name)) return;
      begin(name);
      try {
        for (let left: LandedRow | null = row; left;) left = await expandPart(left);
      } catch (error) {
        begun.delete(name);
        throw error;
      }
    },
  };
}
