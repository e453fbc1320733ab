import { firstIdAt } from "../../base/ids.ts";
import type { Deps } from "../../deps.ts";
import { outboxGraceMs } from "./fan_out.ts";
import { countOutbox, listDue, listReady } from "../store.ts";

/** Deliveries waiting in the store. NaN where the store does not answer. */
interface Backlog {
  due: number;
  /** How long the oldest due delivery has waited, in ms. */
  oldestMs: number;
  /** Events whose deliveries should have been written by now, and are not. */
  events: number;
}

// How many subscriptions are inspected: a very long backlog is visible without being counted whole.
const subscriptionsMax = 50;
const readyRowsMax = 500;
const dueMax = 1_000;
const eventsMax = 500;
/** How long a measurement is reused, in ms. */
const freshMs = 10_000;

const unknown: Backlog = { due: NaN, oldestMs: NaN, events: NaN };

/** Measures the head of each queue, at most once in ten seconds. */
export function createBacklog({ kv, clock }: Pick<Deps, "kv" | "clock">): () => Promise<Backlog> {
  let known: { at: number; backlog: Promise<Backlog> } | null = null;

  async function look(now: number): Promise<Backlog> {
    const ready = await listReady(kv, { now, limit: readyRowsMax, after: null });
    const ids = [...new Set(ready.map(({ subscriptionId }) => subscriptionId))];
    const limit = Math.ceil(dueMax / Math.max(1, Math.min(ids.length, subscriptionsMax)));
    const due = (await Promise.all(
      ids.slice(0, subscriptionsMax).map((id) => listDue(kv, id, { now, limit })),
    )).flat();
    const oldest = due.reduce((least, { dueAt }) => Math.min(least, dueAt), now);
    const beforeId = firstIdAt("evt", now - outboxGraceMs);
    const events = await countOutbox(kv, { beforeId, limit: eventsMax });
    return { due: due.length, oldestMs: now - oldest, events };
  }

  return () => {
    const at = clock.elapsed();
    if (!known || at - known.at >= freshMs) {
      known = { at, backlog: look(clock.now()).catch(() => unknown) };
    }
    return known.backlog;
  };
}
