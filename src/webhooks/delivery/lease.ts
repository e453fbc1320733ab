import type { Deps } from "../../deps.ts";
import { deliveryKey } from "../../store/keys.ts";
import { emptyWrite, type Key } from "../../store/kv.ts";
import { endedAsError, giveUpReason, leasedDelivery } from "./delivery.ts";
import {
  type DeliverySlots,
  type Endpoint,
  type LeasedDelivery,
  storedDelivery,
} from "./endpoint.ts";
import { putDelivery } from "./delivery_rows.ts";
import type { ResultRecorder } from "./record.ts";
import type { Delivery } from "../schema.ts";
import { listDue, readDeliveries, readEventTexts } from "../store.ts";

/** Leases of due deliveries. */
interface Leases {
  /** Leases the due deliveries of an endpoint, as far as it has slots, and starts them. */
  take(endpoint: Endpoint): Promise<void>;
}

interface LeaseDeps {
  slots: DeliverySlots;
  results: ResultRecorder;
  start(leased: LeasedDelivery): void;
}

/** How many due deliveries are inspected when no slot is free: some may have to be given up. */
const lookedAtMin = 20;
/** Time for a slow store to write the result, in ms. */
const leaseMarginMs = 10_000;

/** Returns how long an attempt may take before its delivery becomes due again, in ms. */
export function leaseMs(timeoutMs: number): number {
  return timeoutMs + leaseMarginMs;
}

/** Takes leases by check-and-set: of several processes, one gets each delivery. */
export function createLeases(deps: Deps, { slots, results, start }: LeaseDeps): Leases {
  const { kv, committer, clock, config, log, metrics, holders } = deps;
  const { attemptsMax, backoffBaseMs, timeoutMs } = config.webhooks;
  const policy = { attemptsMax, backoffBaseMs };

  async function removeStray(key: Key): Promise<void> {
    log("warn", "webhook_stray_row", { key: key.join(" ") });
    await committer.commit({ checks: [], sets: [], deletes: [key] });
    metrics.repairs.stray_row.add();
  }

  /**
   * Leases one delivery and starts it. False when another process has taken or changed it in
   * between.
   */
  async function leaseOne(
    endpoint: Endpoint,
    { value, version }: { value: Delivery; version: string | null },
    eventText: string,
  ): Promise<boolean> {
    slots.take(endpoint);
    const delivery = leasedDelivery(value, holders.own, clock.now() + leaseMs(timeoutMs));
    const write = emptyWrite();
    write.checks.push({ key: deliveryKey(value.projectId, value.id), version });
    putDelivery(write, value, delivery);
    const landed = await committer.commit(write).catch(() => null);
    if (landed === null) slots.release(endpoint);
    else {
      // The previous holder of the lease did not complete it.
      if (value.lease !== null) metrics.repairs.lease.add();
      start(storedDelivery({ endpoint, delivery, eventText }, landed));
    }
    return landed !== null;
  }

  return {
    async take(endpoint) {
      const announced = holders.announce();
      if (announced) await announced;
      const now = clock.now();
      const free = slots.free(endpoint, now);
      const limit = free > 0 ? free : lookedAtMin;
      const due = await listDue(kv, endpoint.id, { now, limit });
      const deliveries = await readDeliveries(kv, due);
      const texts = await readEventTexts(
        kv,
        deliveries.map((found) => found?.value ?? { projectId: "", eventId: "" }),
      );
      const work: Promise<unknown>[] = [];
      const begin = (piece: Promise<unknown>) => {
        // It may fail before the others have started; it is still awaited below.
        piece.catch(() => {});
        work.push(piece);
      };
      let hasBacklog = due.length === limit;
      for (const [at, { key, dueAt }] of due.entries()) {
        const found = deliveries[at];
        if (!found || found.value.status !== "pending" || found.value.dueAt !== dueAt) {
          // The delivery has moved since it was listed, or the row is left over: a correct row
          // never gets here.
          if (await isStray(found?.value, dueAt)) begin(removeStray(key));
          continue;
        }
        const { value, version } = found;
        const text = texts[at];
        const reason = text ? giveUpReason(value, policy, now) : "its event is no longer stored";
        if (reason !== null && version !== null) {
          const after = endedAsError(value, reason, now);
          const row = { key: deliveryKey(value.projectId, value.id), version };
          begin(results.record(endpoint, { before: value, row, after, tried: false }));
        } else if (free > 0 && text) {
          begin(leaseOne(endpoint, found, text));
        } else hasBacklog = true;
      }
      slots.setBacklog(endpoint, hasBacklog);
      await Promise.all(work);
    },
  };

  /**
   * Whether a due row that does not match its delivery is left over, so that nothing else will ever
   * delete it.
   */
  async function isStray(listed: Delivery | undefined, dueAt: number): Promise<boolean> {
    if (!listed) return true;
    const [now] = await readDeliveries(kv, [listed]);
    return now?.value.status !== "pending" || now.value.dueAt !== dueAt;
  }
}
