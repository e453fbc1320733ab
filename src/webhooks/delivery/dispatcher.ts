import type { FleetPart } from "../../fleet/fleet.ts";
import { errorFields } from "../../base/errors.ts";
import { firstIdAt } from "../../base/ids.ts";
import { encodeUtf8 } from "../../base/utf8.ts";
import type { PendingEvent } from "../../events/outbox_notifier.ts";
import { emptyWrite, type Key } from "../../store/kv.ts";
import { outboxKey, readyKey } from "../../store/keys.ts";
import { createLeases } from "./lease.ts";
import { DeliverySlots, type Endpoint, type LeasedDelivery } from "./endpoint.ts";
import { createFanOut, outboxGraceMs } from "./fan_out.ts";
import { readyGrainMs, readyTime } from "./delivery_rows.ts";
import type { LogFields } from "../../deps.ts";
import { createResultRecorder } from "./record.ts";
import { listOutbox, listReady, nextDue, type ReadyRow, type WaitingEvent } from "../store.ts";
import { type AttemptDeps, createAttemptRunner } from "./attempt.ts";
import type { ReportFailing } from "../subscriptions/failing.ts";

/**
 * Delivers events to their subscribers. The store is authoritative: events that this process misses
 * are found there by another one.
 */
export interface Dispatcher {
  /** Delivers events that this process has just committed, without waiting for a poll. */
  wake(events: PendingEvent[]): void;
  /** Starts the deliveries that are due in the store, and resolves when they are under way. */
  poll(): Promise<void>;
  /**
   * Polls from now on whenever the store's alarm fires. Before this call, nothing is delivered by
   * itself.
   */
  listen(): void;
  /** Returns the current state of deliveries to a subscription. */
  stateOf(subscriptionId: string): EndpointStatus;
  /** Shares attempts under way and open breakers with the other processes of the store. */
  part: FleetPart;
  /** Starts no more work; resolves when all work under way has ended. */
  stop(): Promise<void>;
  /** Resolves when no work is under way. */
  idle(): Promise<void>;
  /** Attempts under way, and leased deliveries that wait in memory. */
  load(): { running: number; queued: number };
}

/** The state of deliveries to a subscription. */
export interface EndpointStatus {
  /** Attempts under way in all processes. */
  running: number;
  /** Until when nothing is sent because the endpoint kept failing, in ms since 1970; else null. */
  openUntil: number | null;
}

const pageSize = 200;
/** The part of a lease that is reserved for writing the result of the attempt, in ms. */
const resultMs = 2_000;
/**
 * A subscription with more due deliveries than slots is served again after this time at the latest.
 */
const lookAgainMs = 5_000;

/** Creates the dispatcher: outbox -> deliveries -> attempts -> results. */
export function createDispatcher(services: DispatcherDeps): Dispatcher {
  const { deps: { kv, committer, clock, log, alarm, config, metrics } } = services;
  const readyRowsMax = kv.limits.checks - 2;
  const slots = new DeliverySlots();
  const results = createResultRecorder(services.deps, services.reportFailing);
  const work = new Set<Promise<unknown>>();
  let stopped = false;
  let polling: Promise<void> | null = null;
  /** Since when this process has seen events with ids ahead of its clock, by their ids. */
  let aheadSince = new Map<string, number>();

  const attempts = createAttemptRunner(services, { slots, results, onFree });
  const start = (leased: LeasedDelivery) =>
    track(attempts.run(leased), {
      delivery: leased.delivery.id,
      eventId: leased.delivery.eventId,
    });
  const expansion = createFanOut(services.deps, { slots, start, onQueued: startQueued });
  const leases = createLeases(services.deps, { slots, results, start });

  /** Tracks a piece of work until it ends. Its error is logged, and polls find the work again. */
  function track(piece: Promise<unknown>, about: LogFields): void {
    const seen: Promise<unknown> = piece
      .catch((error) => log("error", "webhook_work_failed", { ...about, ...errorFields(error) }))
      .finally(() => work.delete(seen));
    work.add(seen);
  }

  /** Leases the due deliveries of one subscription; one call at a time for each. */
  async function serve(endpoint: Endpoint): Promise<void> {
    if (endpoint.leasing) {
      endpoint.rerun = true;
      return;
    }
    endpoint.leasing = true;
    try {
      do {
        endpoint.rerun = false;
        if (!stopped) await leases.take(endpoint);
      } while (endpoint.rerun);
    } finally {
      endpoint.leasing = false;
    }
  }

  /** Starts deliveries that wait in memory, as far as slots are free. `stop` waits for them too. */
  function startQueued(): void {
    const leaseLeftMin = config.webhooks.timeoutMs + resultMs;
    for (;;) {
      const leased = slots.dequeue(clock.now(), leaseLeftMin);
      if (!leased) return;
      start(leased);
    }
  }

  /** Fills a free slot. Deliveries in the store go first, since they are older. */
  function onFree(): void {
    const endpoint = stopped ? null : slots.nextWithBacklog(clock.now());
    if (endpoint) track(serve(endpoint), { subscription: endpoint.id });
    startQueued();
  }

  /**
   * Serves a subscription, and replaces its ready rows by one for the next delivery that is due.
   */
  async function serveReady(endpoint: Endpoint, rows: ReadyRow[]): Promise<void> {
    await serve(endpoint);
    const now = clock.now();
    const next = await nextDue(kv, endpoint.id);
    const write = emptyWrite();
    const when = next === null ? null : readyTime(lookAt(endpoint, next, now));
    if (when !== null) {
      const value = encodeUtf8(endpoint.projectId);
      write.sets.push({ key: readyKey(when, endpoint.id), value });
      if (next !== null && next > now) alarm.schedule(next);
    }
    // The next poll finds what does not fit.
    for (const { key, version } of rows.slice(0, readyRowsMax)) {
      // A row of the current second may be written again: it is left for the next poll.
      if (key[1] === when || Number(key[1]) > now - readyGrainMs) continue;
      write.checks.push({ key, version });
      write.deletes.push(key);
    }
    if (write.deletes.length > 0) await committer.commit(write);
  }

  function lookAt({ breaker }: Endpoint, next: number, now: number): number {
    if (next > now) return next;
    return breaker.openUntil(now) ?? now + lookAgainMs;
  }

  /**
   * Lists events whose ids are ahead of this process's clock, and that have waited too long by
   * `elapsed`: the clock that made the ids was wrong.
   */
  async function listAhead(): Promise<WaitingEvent[]> {
    const events = await listOutbox(kv, { fromId: firstIdAt("evt", clock.now()), limit: pageSize });
    const now = clock.elapsed();
    const before = aheadSince;
    aheadSince = new Map(events.map(({ id }) => [id, before.get(id) ?? now]));
    return events.filter(({ id }) => now - (aheadSince.get(id) ?? now) >= outboxGraceMs);
  }

  async function pollOutbox(): Promise<void> {
    // Younger rows belong to the process that wrote them.
    const beforeId = firstIdAt("evt", clock.now() - outboxGraceMs);
    const waiting = await listOutbox(kv, { beforeId, limit: pageSize });
    waiting.push(...await listAhead());
    await Promise.all(waiting.map(async ({ text, ...event }) => {
      if (text !== null) {
        await expansion.expand({ ...event, text });
        return metrics.repairs.outbox_row.add();
      }
      log("warn", "webhook_event_gone", { eventId: event.id });
      await committer.commit({ ...emptyWrite(), deletes: [outboxKey(event.id)] });
    }));
  }

  async function pollReady(): Promise<void> {
    let after: Key | null = null;
    for (;;) {
      const rows: ReadyRow[] = await listReady(kv, { now: clock.now(), limit: pageSize, after });
      const bySubscription = Map.groupBy(rows, ({ subscriptionId }) => subscriptionId);
      const served = [...bySubscription].map(([id, own]) =>
        serveReady(slots.of(own[0]?.projectId ?? "", id), own)
      );
      await Promise.all(served);
      const last = rows.at(-1);
      if (rows.length < pageSize || !last || stopped) return;
      after = last.key;
    }
  }

  const dispatcher: Dispatcher = {
    wake(events) {
      if (stopped) return;
      for (const event of events) track(expansion.takeUp(event), { eventId: event.id });
    },
    poll() {
      if (stopped) return Promise.resolve();
      polling ??= Promise.all([pollOutbox(), pollReady()]).then(() => {})
        .finally(() => (polling = null));
      return polling;
    },
    listen() {
      alarm.onWake(() => track(dispatcher.poll(), { by: "alarm" }));
    },
    stateOf(subscriptionId) {
      const endpoint = slots.peek(subscriptionId);
      return {
        running: (endpoint?.running ?? 0) + (endpoint?.elsewhere.running ?? 0),
        openUntil: endpoint?.breaker.openUntil(clock.now()) ?? null,
      };
    },
    async stop() {
      stopped = true;
      await dispatcher.idle();
    },
    async idle() {
      while (work.size > 0) await Promise.all(work);
    },
    part: slots.part(clock.now),
    load: () => ({ running: slots.running, queued: slots.queued }),
  };
  return dispatcher;
}

/** The services that the dispatcher depends on. */
interface DispatcherDeps extends AttemptDeps {
  reportFailing: ReportFailing;
}
