import { Breaker } from "./breaker.ts";
import { deliveryKey } from "../store/keys.ts";
import type { Key } from "../store/kv.ts";
import type { Delivery } from "./schema.ts";
import type { OpenSubscription } from "./subscriptions.ts";

/** A delivery that this process holds the lease of. */
export interface LeasedDelivery {
  endpoint: Endpoint;
  delivery: Delivery;
  eventText: string;
  /** What its result is written on: its own row, or its event's in the outbox while it has none. */
  row: { key: Key; version: string };
  isWritten: boolean;
  /** Whether it still is this process's: one that could not be written down in time is not. */
  mayBegin(): Promise<boolean>;
  /** Resolves when `row` is what it stays. */
  settled(): Promise<void>;
}

/** One whose claim has been written, under that version. */
export function isWritten(
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

// Deliveries that wait for a slot under a lease, at one endpoint and in all: as many as a healthy
// endpoint takes within the lease. What waits in the store instead costs twice the writes.
const queueMax = 2_048;
const queuedMax = 20_000;
/** Most deliveries under way at once, over all subscriptions; */
const runningMax = 256;
/**
 * and so many more for those that have fewer under way than this: slow ones cannot take them all.
 */
const reservedSlots = 256;
const reservedBelow = 2;
const endpointsMax = 20_000;
const claimedAtOnce = 8;

/** What this process knows of one subscription while it delivers to it. */
export class Endpoint {
  readonly projectId: string;
  readonly id: string;
  readonly breaker = new Breaker();
  /** Deliveries under way. */
  running = 0;
  /** Leased, and waiting for a slot; oldest first. */
  readonly queue: LeasedDelivery[] = [];
  /** Being written, and then to be put into the queue. */
  queueing = 0;
  /** A claim is being made; and one more was asked for meanwhile. */
  claiming = false;
  rerun = false;
  /** As it was opened last, and at which version of its project. */
  opened: { version: string; at: number; subscription: Promise<OpenSubscription | null> } | null =
    null;

  constructor(projectId: string, id: string) {
    this.projectId = projectId;
    this.id = id;
  }
}

/**
 * The slots that deliveries run in: a cap for each subscription, so that one that hangs costs the
 * others nothing, one over all, and a few slots that all the slow ones of a project cannot take
 * from another. Whoever wants a slot and gets none is hungry, and is served in turn when one comes
 * free.
 */
export class DeliverySlots {
  readonly #endpoints = new Map<string, Endpoint>();
  readonly #hasBacklog = new Set<Endpoint>();
  readonly #queueing = new Set<Endpoint>();
  #running = 0;
  #queued = 0;

  /** The one endpoint of a subscription. */
  of(projectId: string, id: string): Endpoint {
    const known = this.#endpoints.get(id);
    if (known) return known;
    if (this.#endpoints.size >= endpointsMax) this.#forgetIdle();
    const made = new Endpoint(projectId, id);
    this.#endpoints.set(id, made);
    return made;
  }

  /** What is known of a subscription, or null where nothing was delivered to it yet. */
  peek(id: string): Endpoint | null {
    return this.#endpoints.get(id) ?? null;
  }

  /** How many more may be started at an endpoint now. */
  free(endpoint: Endpoint, now: number): number {
    const own = endpoint.breaker.allowed(now) - endpoint.running;
    const kept = Math.min(
      reservedBelow - endpoint.running,
      runningMax + reservedSlots - this.#running,
    );
    return Math.max(0, Math.min(own, Math.max(runningMax - this.#running, kept)));
  }

  /**
   * The same for what is new: while older deliveries wait in the store, they may have half of the
   * slots to themselves, or a steady stream of new ones would keep them waiting.
   */
  freeForNew(endpoint: Endpoint, now: number): number {
    const free = this.free(endpoint, now);
    if (!this.#hasBacklog.has(endpoint)) return free;
    return Math.min(free, Math.floor(endpoint.breaker.allowed(now) / 2) - endpoint.running);
  }

  /** Whether a new delivery may be leased to wait in memory, instead of in the store. */
  hasRoom({ queue, queueing, breaker }: Endpoint, now: number): boolean {
    return queue.length + queueing < queueMax && this.#queued < queuedMax &&
      breaker.allowed(now) > 0;
  }

  /** Puts a leased delivery behind those that wait for a slot. */
  enqueue(claimed: LeasedDelivery): void {
    claimed.endpoint.queue.push(claimed);
    this.#queued++;
    this.#queueing.add(claimed.endpoint);
  }

  /** The next leased delivery that may be tried now, in turn among endpoints; in its slot. */
  dequeue(now: number, leaseLeftMin: number): LeasedDelivery | null {
    for (const endpoint of this.#queueing) {
      while (this.freeForNew(endpoint, now) > 0) {
        const claimed = endpoint.queue.shift();
        if (!claimed) break;
        this.#queued--;
        // One that waited too long comes due by itself when its lease ends.
        if (claimed.delivery.dueAt - now < leaseLeftMin) continue;
        this.take(endpoint);
        this.#queueing.delete(endpoint);
        if (endpoint.queue.length > 0) this.#queueing.add(endpoint);
        return claimed;
      }
      if (endpoint.queue.length === 0) this.#queueing.delete(endpoint);
    }
    return null;
  }

  take(endpoint: Endpoint): void {
    endpoint.running++;
    this.#running++;
  }

  release(endpoint: Endpoint): void {
    endpoint.running--;
    this.#running--;
  }

  /** Whether an endpoint has more due than it had slots for. */
  setBacklog(endpoint: Endpoint, hungry: boolean): void {
    this.#hasBacklog.delete(endpoint);
    if (hungry) this.#hasBacklog.add(endpoint);
  }

  /** The endpoint that has been hungry longest and may have a slot now, or null. */
  nextHungry(now: number): Endpoint | null {
    for (const endpoint of this.#hasBacklog) {
      const free = this.free(endpoint, now);
      // Several at once: each claim reads and writes the same few rows for all of them.
      if (free > 0 && free >= Math.min(claimedAtOnce, endpoint.running)) return endpoint;
    }
    return null;
  }

  get running(): number {
    return this.#running;
  }

  /** Deliveries that wait in memory. */
  get queued(): number {
    return this.#queued;
  }

  #forgetIdle(): void {
    for (const [id, endpoint] of this.#endpoints) {
      if (endpoint.running === 0 && !this.#hasBacklog.has(endpoint)) this.#endpoints.delete(id);
    }
  }
}
