import type { Deps, OutsideDeps } from "../../deps.ts";
import { emptyWrite, type Key } from "../../store/kv.ts";
import type { Endpoint } from "./endpoint.ts";
import { putDelivery } from "./delivery_rows.ts";
import { isFailingLong, type ReportFailing } from "../subscriptions/failing.ts";
import type { Delivery, SubscriptionHealth } from "../schema.ts";
import { putHealth, readHealth } from "../store.ts";

/** The new state of a leased delivery. */
export interface DeliveryResult {
  /** The delivery as stored; null when it has not been written yet. */
  before: Delivery | null;
  /** The delivery's row as it was leased; while it has none, its event's row in the outbox. */
  row: { key: Key; version: string };
  after: Delivery;
  /** Whether an attempt was made, so that the result says something about the endpoint. */
  tried: boolean;
}

interface Waiting extends DeliveryResult {
  done: () => void;
}

/** Writes results. Only the holder of the lease can write one; for anyone else nothing changes. */
export interface ResultRecorder {
  /** Writes a result. Resolves when it is durable, or is known to be void. Never throws. */
  record(endpoint: Endpoint, result: DeliveryResult): Promise<void>;
  /**
   * Whether so many results wait at an endpoint that some must be written before more are added.
   */
  isBehind(endpoint: Endpoint): boolean;
}

const batchSize = 64;
/**
 * The most results that wait: that many deliveries would have to be sent again after a crash,
 * besides those under way.
 */
const waitingMax = 256;

/**
 * Combines the results of one subscription that arrive during its last write, so that its health is
 * written once for many. Health is written unchecked, so it never blocks a result. A result that
 * cannot be written is attempted again when its lease ends.
 */
export function createResultRecorder(
  { kv, committer, clock, log, metrics }: OutsideDeps,
  reportFailing: ReportFailing | null = null,
): ResultRecorder {
  const batchMax = Math.min(batchSize, kv.limits.checks - 3);
  const lanes = new Map<Endpoint, Waiting[]>();

  async function drain(endpoint: Endpoint, lane: Waiting[]): Promise<void> {
    while (lane.length > 0) {
      const batch = lane.splice(0, batchMax);
      await writeDown(endpoint, batch).catch((error) =>
        log("error", "webhook_result_lost", {
          subscription: endpoint.id,
          deliveries: batch.map(({ after }) => after.id),
          error: String(error),
        })
      );
      batch.forEach(({ done }) => done());
    }
    lanes.delete(endpoint);
  }

  async function writeDown(endpoint: Endpoint, batch: Waiting[]): Promise<void> {
    if (await commit(endpoint, batch)) return;
    for (const waiting of batch) {
      if (await commit(endpoint, [waiting])) continue;
      // The lease had ended, and another process writes the result.
      const { id: delivery, eventId } = waiting.after;
      log("warn", "webhook_result_void", { delivery, eventId });
    }
  }

  async function commit(endpoint: Endpoint, batch: Waiting[]): Promise<boolean> {
    const write = emptyWrite();
    for (const { before, row, after } of batch) {
      write.checks.push(row);
      if (before === null) write.deletes.push(row.key);
      putDelivery(write, before, after);
    }
    const health = await healthAfter(endpoint, batch);
    if (health) putHealth(write, endpoint, health);
    const version = await committer.commit(write);
    if (version === null) return false;
    batch.forEach(report);
    const failed = batch.findLast(({ tried }) => tried)?.after;
    if (health && failed && !health.failingReportedAt && isFailingLong(health, clock.now())) {
      await reportFailing?.(endpoint, failed);
    }
    return true;
  }

  /**
   * Returns the health of a subscription after results; null where nothing was attempted. A success
   * replaces the health; only failures add to it.
   */
  async function healthAfter(
    endpoint: Endpoint,
    batch: Waiting[],
  ): Promise<SubscriptionHealth | null> {
    const tried = batch.filter((each) => each.tried).map(({ after }) => after);
    if (tried.length === 0) return null;
    const at = tried.findLastIndex(({ status }) => status === "success");
    const failed = tried.length - 1 - at;
    const last = tried[at];
    const firstFailed = tried[at + 1];
    const failing = firstFailed ? { failingSince: timeOf(firstFailed) } : {};
    if (last) {
      return { consecutiveFailures: failed, lastDeliveredAt: timeOf(last), ...failing };
    }
    const [before] = await readHealth(kv, [endpoint]);
    if (!before) throw new Error("a requested row was not returned");
    const consecutiveFailures = before.consecutiveFailures + failed;
    return { ...failing, ...before, consecutiveFailures };
  }

  function report({ after, tried }: Waiting): void {
    const outcome = outcomeOf(after, tried);
    metrics.deliveries[outcome].add();
    if (outcome === "delivered" || outcome === "retried") return;
    const { id: delivery, eventId, eventType, attempts, error } = after;
    log("warn", "webhook_errored", { delivery, eventId, eventType, attempts, error });
  }

  return {
    isBehind: (endpoint) => (lanes.get(endpoint)?.length ?? 0) >= waitingMax,
    record: (endpoint, result) =>
      new Promise((done) => {
        const waiting = { ...result, done };
        const lane = lanes.get(endpoint);
        if (lane) return void lane.push(waiting);
        const opened = [waiting];
        lanes.set(endpoint, opened);
        drain(endpoint, opened);
      }),
  };
}

function timeOf({ updatedAt }: Delivery): string {
  return new Date(updatedAt).toISOString();
}

function outcomeOf({ status }: Delivery, tried: boolean): keyof Deps["metrics"]["deliveries"] {
  if (status === "success") return "delivered";
  if (status === "pending") return "retried";
  return tried ? "errored" : "dropped";
}
