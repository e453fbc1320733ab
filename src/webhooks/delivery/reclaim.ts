import type { Deps } from "../../deps.ts";
import { deliveryKey } from "../../store/keys.ts";
import { emptyWrite, type Key } from "../../store/kv.ts";
import { longestWaitMs } from "./delivery.ts";
import { putDelivery } from "./delivery_rows.ts";
import { leaseMs } from "./lease.ts";
import type { Delivery } from "../schema.ts";
import {
  type DueRow,
  listDue,
  listReady,
  readDeliveries,
  type ReadyRow,
  type Versioned,
} from "../store.ts";

/**
 * Makes deliveries due that would wait for a dead process, or for a time that a wrong clock set.
 */
export interface Reclaim {
  /**
   * Reports that a process is gone, or that a clock was set: the next sweep looks at all pending
   * deliveries.
   */
  expectLost(): void;
  /**
   * Looks at all pending deliveries where some may be lost, else at those that are due far ahead.
   */
  sweep(): Promise<void>;
}

const pageSize = 200;
const endOfTime = Number.MAX_SAFE_INTEGER;

/** Creates the reclaim of lost deliveries; `poll` delivers those that are due. */
export function createReclaim(deps: Deps, poll: () => Promise<void>): Reclaim {
  const { kv, committer, clock, config: { webhooks }, holders } = deps;
  const leasedMs = leaseMs(webhooks.timeoutMs);
  // Twice as long as any wait: then a clock was set. Clocks of processes may differ.
  const farMs = 2 * Math.max(longestWaitMs(webhooks), leasedMs);
  // A start may follow a death.
  let mayBeLost = true;
  let released = 0;

  /** Whether no process is going to end a delivery's attempt, or begin the next one in time. */
  function isLost({ status, lease, dueAt }: Delivery, now: number): boolean {
    if (status !== "pending" || dueAt <= now) return false;
    if (lease !== null && holders.isGone(lease)) return true;
    // The attempt of a process that lives, whose clock may be ahead, is left to it.
    return dueAt > now + farMs && (lease === null || !isProcess(lease));
  }

  async function release({ value, version }: Versioned<Delivery>, now: number): Promise<void> {
    const write = emptyWrite();
    write.checks.push({ key: deliveryKey(value.projectId, value.id), version });
    putDelivery(write, value, { ...value, lease: null, dueAt: now, nextRetryAt: now });
    if (await committer.commit(write) === null) return;
    deps.metrics.repairs.lease.add();
    released++;
  }

  /** Looks at deliveries of a subscription that are due from one time up to another. */
  async function lookAt(
    subscriptionId: string,
    { from, to, now }: { from: number; to: number; now: number },
  ): Promise<void> {
    for (let after: Key | null = null;;) {
      const range = { now: to, from, after, limit: pageSize };
      const due: DueRow[] = await listDue(kv, subscriptionId, range);
      const found = await readDeliveries(kv, due);
      const lost = found.filter((each) => each !== null && isLost(each.value, now));
      await Promise.all(lost.map((each) => each && release(each, now)));
      const last = due.at(-1);
      if (!last || due.length < pageSize) return;
      after = last.key;
    }
  }

  /** The subscriptions with a ready row from one time on. */
  async function subscriptionsFrom(from: number): Promise<Set<string>> {
    const ids = new Set<string>();
    for (let after: Key | null = null;;) {
      const range = { now: endOfTime, from, after, limit: pageSize };
      const rows: ReadyRow[] = await listReady(kv, range);
      for (const { subscriptionId } of rows) ids.add(subscriptionId);
      const last = rows.at(-1);
      if (!last || rows.length < pageSize) return ids;
      after = last.key;
    }
  }

  return {
    expectLost: () => void (mayBeLost = true),
    async sweep() {
      const now = clock.now();
      const far = { from: now + farMs, to: endOfTime, now };
      const looksAtAll = mayBeLost;
      mayBeLost = false;
      try {
        for (const id of await subscriptionsFrom(looksAtAll ? 0 : far.from)) {
          if (looksAtAll) await lookAt(id, { from: now + 1, to: now + leasedMs, now });
          await lookAt(id, far);
        }
      } catch (error) {
        mayBeLost ||= looksAtAll;
        throw error;
      }
      if (released > 0) await poll();
      released = 0;
    },
  };
}

/** Whether a lease names a process; in 0.9.0 it did not. Version 1.1 may drop it. */
function isProcess(lease: string): boolean {
  return lease.startsWith("prc_");
}
