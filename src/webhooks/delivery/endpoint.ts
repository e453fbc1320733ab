import { isObject, type Json } from "../../base/json.ts";
import type { FleetPart } from "../../fleet/fleet.ts";
import { Breaker } from "./breaker.ts";
import { deliveryKey } from "../../store/keys.ts";
import type { Key } from "../../store/kv.ts";
import type { Delivery } from "../schema.ts";
import type { OpenSubscription } from "../subscriptions/subscriptions.ts";

/** A delivery whose lease this process holds. */
export interface LeasedDelivery {
  endpoint: Endpoint;
  delivery: Delivery;
  eventText: string;
  /**
   * The row that the result of the attempt replaces: the delivery's own, or the event's row in the
   * outbox while the delivery has no row.
   */
  row: { key: Key; version: string };
  /** Whether the delivery has a row of its own. */
  isWritten: boolean;
  /** Whether this process still holds the lease. False if it could not be written in time. */
  mayBegin(): Promise<boolean>;
  /** Resolves when `row` has its final value. */
  settled(): Promise<void>;
}

/** A leased delivery whose row, with its lease, is in the store as `version`. */
export function storedDelivery(
  { endpoint, delivery, eventText }: Pick<LeasedDelivery, "endpoint" | "delivery" | "eventText">,
  version: string,
): LeasedDelivery {
  const row = { key: deliveryKey(delivery.projectId, delivery.id), version };
  return {
    endpoint,
    delivery,
    eventText,
    row,
    isWritten: true,
    mayBegin: () => Promise.resolve(true),
    settled: () => Promise.resolve(),
  };
}

// Leased deliveries that wait for a slot, for one endpoint and in all: as many as a healthy
// endpoint takes within the lease. Waiting in the store costs twice as many writes.
const queueMax = 2_048;
const queuedMax = 20_000;
/** The most deliveries under way, over all subscriptions, without `reservedSlots`. */
const runningMax = 256;
/**
 * Slots beyond `runningMax`, for subscriptions with fewer than `reservedBelow` deliveries under
 * way, so that slow endpoints cannot take every slot.
 */
const reservedSlots = 256;
const reservedBelow = 2;
/** How many endpoints are remembered before idle ones are forgotten. */
const endpointsMax = 20_000;
/** How many slots must be free before a busy endpoint leases more. */
const leasedAtOnce = 8;

/** A subscription's endpoint, with the deliveries to it that this process runs and queues. */
export class Endpoint {
  readonly projectId: string;
  readonly id: string;
  readonly breaker = new Breaker();
  /** Deliveries under way. */
  running = 0;
  /** Deliveries under way to this endpoint in other processes, and how many processes have some. */
  elsewhere = { running: 0, processes: 0 };
  /** Leased deliveries waiting for a slot; oldest first. */
  readonly queue: LeasedDelivery[] = [];
  /** Deliveries being written, to be queued afterwards. */
  queueing = 0;
  /** Whether due deliveries are being leased now. */
  leasing = false;
  /** Whether more became due while deliveries were being leased: they are looked for afterwards. */
  rerun = false;
  /** The subscription as it was last opened, and at which version of its project. */
  opened: { version: string; at: number; subscription: Promise<OpenSubscription | null> } | null =
    null;

  constructor(projectId: string, id: string) {
    this.projectId = projectId;
    this.id = id;
  }
}

/** The most busy endpoints that a process lists in its fleet row. */
const toldMax = 300;

/** How many deliveries of an endpoint may run here: what others leave, or a fair share. */
function allowedHere({ breaker, elsewhere }: Endpoint, now: number): number {
  const allowed = breaker.allowed(now);
  const share = Math.ceil(allowed / (elsewhere.processes + 1));
  return Math.max(share, allowed - elsewhere.running);
}

/**
 * The slots that deliveries run in: a cap for each subscription, so that one that hangs does not
 * affect the others; one over all; and some slots that slow subscriptions of one project cannot
 * take from another. An endpoint that gets no slot has a backlog, and is served in turn when one
 * becomes free.
 */
export class DeliverySlots {
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #hasBacklog = new Set<Endpoint>();
  readonly #queueing = new Set<Endpoint>();
  #running = 0;
  #queued = 0;

  /** Returns the endpoint of a subscription. */
  of(projectId: string, id: string): Endpoint {
    const known = this.#endpoints.get(id);
    if (known) return known;
    if (this.#endpoints.size >= endpointsMax) this.#forgetIdle();
    const made = new Endpoint(projectId, id);
    this.#endpoints.set(id, made);
    return made;
  }

  /** Returns the endpoint of a subscription, or null where nothing was delivered to it yet. */
  peek(id: string): Endpoint | null {
    return this.#endpoints.get(id) ?? null;
  }

  /** Returns how many more deliveries may start at an endpoint now. */
  free(endpoint: Endpoint, now: number): number {
    const own = allowedHere(endpoint, now) - endpoint.running;
    const kept = Math.min(
      reservedBelow - endpoint.running,
      runningMax + reservedSlots - this.#running,
    );
    return Math.max(0, Math.min(own, Math.max(runningMax - this.#running, kept)));
  }

  /**
   * Returns how many more new deliveries may start at an endpoint now. While older ones wait in the
   * store, new ones get at most half of the slots, so that a steady stream of them cannot keep the
   * older ones waiting.
   */
  freeForNew(endpoint: Endpoint, now: number): number {
    const free = this.free(endpoint, now);
    if (!this.#hasBacklog.has(endpoint)) return free;
    return Math.min(free, Math.floor(allowedHere(endpoint, now) / 2) - endpoint.running);
  }

  /** Whether a new delivery may be leased and wait in memory, instead of in the store. */
  hasRoom({ queue, queueing, breaker }: Endpoint, now: number): boolean {
    return queue.length + queueing < queueMax && this.#queued < queuedMax &&
      breaker.allowed(now) > 0;
  }

  /** Queues a leased delivery behind those that wait for a slot. */
  enqueue(leased: LeasedDelivery): void {
    leased.endpoint.queue.push(leased);
    this.#queued++;
    this.#queueing.add(leased.endpoint);
  }

  /** Takes a slot for the next leased delivery, in turn among endpoints, and returns it. */
  dequeue(now: number, leaseLeftMin: number): LeasedDelivery | null {
    for (const endpoint of this.#queueing) {
      while (this.freeForNew(endpoint, now) > 0) {
        const leased = endpoint.queue.shift();
        if (!leased) break;
        this.#queued--;
        // A delivery that waited too long becomes due by itself when its lease ends.
        if (leased.delivery.dueAt - now < leaseLeftMin) continue;
        this.take(endpoint);
        this.#queueing.delete(endpoint);
        if (endpoint.queue.length > 0) this.#queueing.add(endpoint);
        return leased;
      }
      if (endpoint.queue.length === 0) this.#queueing.delete(endpoint);
    }
    return null;
  }

  /** Takes a slot, whether or not one is free: ask `free` before. */
  take(endpoint: Endpoint): void {
    endpoint.running++;
    this.#running++;
  }

  /** Gives a slot back that was taken. */
  release(endpoint: Endpoint): void {
    endpoint.running--;
    this.#running--;
  }

  /** Records whether an endpoint has more due deliveries than it had slots for. */
  setBacklog(endpoint: Endpoint, hasBacklog: boolean): void {
    this.#hasBacklog.delete(endpoint);
    if (hasBacklog) this.#hasBacklog.add(endpoint);
  }

  /** Returns the endpoint that has had a backlog for longest and may have a slot now, or null. */
  nextWithBacklog(now: number): Endpoint | null {
    for (const endpoint of this.#hasBacklog) {
      const free = this.free(endpoint, now);
      // Several at once: each lease reads and writes the same few rows for all of them.
      if (free > 0 && free >= Math.min(leasedAtOnce, endpoint.running)) return endpoint;
    }
    return null;
  }

  /** Deliveries under way, over all endpoints. */
  get running(): number {
    return this.#running;
  }

  /** Leased deliveries waiting in memory. */
  get queued(): number {
    return this.#queued;
  }

  /** Shares attempts under way and open breakers with the other processes of the store. */
  part(now: () => number): FleetPart {
    return {
      say: () => {
        const busy: [string, Json][] = [];
        for (const [id, { running, breaker, projectId }] of this.#endpoints) {
          const openUntil = breaker.openUntil(now());
          if (running === 0 && openUntil === null) continue;
          busy.push([id, [projectId, running, openUntil ?? 0]]);
          if (busy.length === toldMax) break;
        }
        return busy.length === 0 ? null : Object.fromEntries(busy);
      },
      hear: (others) => {
        for (const endpoint of this.#endpoints.values()) {
          endpoint.elsewhere = { running: 0, processes: 0 };
        }
        for (const told of others.values()) {
          for (const [id, value] of Object.entries(isObject(told) ? told : {})) {
            if (!Array.isArray(value)) continue;
            const [projectId, running, openUntil] = value;
            if (typeof running !== "number" || typeof openUntil !== "number") continue;
            const endpoint = this.of(String(projectId), id);
            endpoint.elsewhere.running += running;
            endpoint.elsewhere.processes += running > 0 ? 1 : 0;
            endpoint.breaker.adopt(openUntil, now());
          }
        }
      },
    };
  }

  #forgetIdle(): void {
    for (const [id, endpoint] of this.#endpoints) {
      if (endpoint.running === 0 && !this.#hasBacklog.has(endpoint)) this.#endpoints.delete(id);
    }
  }
}
