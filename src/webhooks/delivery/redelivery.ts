import { badRequest, notFound } from "../../base/errors.ts";
import { firstIdAt } from "../../base/ids.ts";
import type { Deps } from "../../deps.ts";
import { type AuditActor, auditRow } from "../../projects/audit.ts";
import {
  deliveryKey,
  logKey,
  logPrefix,
  redeliveryJobKey,
  redeliveryJobsPrefix,
} from "../../store/keys.ts";
import { type ExpiringKind, withExpiry } from "../../store/expiry.ts";
import { emptyWrite, type Key, type Kv, type Write } from "../../store/kv.ts";
import { redelivered } from "./delivery.ts";
import type { Dispatcher } from "./dispatcher.ts";
import { filterName, putDelivery } from "./delivery_rows.ts";
import type { Delivery, RedeliveryJob } from "../schema.ts";
import { readDeliveries, type Versioned } from "../store.ts";
import { fromBytes, toBytes } from "../../base/json.ts";

/**
 * Makes deliveries pending again, for an operator or an owner, and records it in the audit trail.
 */
export interface Redelivery {
  /**
   * Redelivers one delivery that has ended, with or without success. Throws 404, and 400 while it
   * is pending.
   */
  one(projectId: string, deliveryId: string, by: AuditActor): Promise<Delivery>;
  /**
   * Redelivers everything that failed at a subscription since a time, by a job that survives this
   * process.
   */
  all(projectId: string, meant: FailedSince, by: AuditActor): Promise<RedeliveryJob>;
  /** Returns the job's current state. Throws 404. */
  job(projectId: string, jobId: string): Promise<RedeliveryJob>;
  /** Continues all jobs; a bounded part at each call. */
  sweep(): Promise<void>;
}

/** Deliveries that failed at a subscription since a time, in ms since 1970. */
interface FailedSince {
  subscriptionId: string;
  since: number;
}

const deliveriesPerPart = 8;
const partsPerSweep = 25;
const jobsPerSweep = 500;
const endedJobLifetimeMs = 7 * 24 * 60 * 60 * 1000;

/** Redeliveries, which end some days after the last delivery was made pending. */
export const redeliveryJobRows: ExpiringKind = {
  prefix: redeliveryJobsPrefix,
  endsAt(value) {
    const { status, updatedAt } = fromBytes<RedeliveryJob>(value);
    return status === "done" ? Date.parse(updatedAt) + endedJobLifetimeMs : Infinity;
  },
};

/** Returns a delivery id of a time, which sorts before all others of that time. */
const firstId = (ms: number) => firstIdAt("dly", ms);
const lastId = (ms: number) => firstIdAt("dly", ms + 1);

/** Creates redelivery over the store. */
export function createRedelivery(deps: Deps, dispatcher: Pick<Dispatcher, "poll">): Redelivery {
  const { kv, committer, clock } = deps;

  /** Redelivers the next few failed deliveries and moves the job's position, in one write. */
  async function doPart({ value: job, version }: Versioned<RedeliveryJob>): Promise<boolean> {
    const { projectId, subscriptionId } = job;
    const filter = filterName({ subscriptionId }, "error");
    const rows = await kv.list({
      prefix: logPrefix(projectId, filter),
      start: logKey(projectId, filter, job.from),
      end: logKey(projectId, filter, job.until),
      limit: deliveriesPerPart,
    });
    const ids = rows.map(({ key }) => String(key[3]));
    const found = await readDeliveries(kv, ids.map((id) => ({ projectId, id })));
    const now = clock.now();
    const write = emptyWrite();
    let count = 0;
    for (const row of found) {
      if (row?.value.status !== "error") continue;
      write.checks.push({ key: deliveryKey(projectId, row.value.id), version: row.version });
      putDelivery(write, row.value, redelivered(row.value, now));
      count++;
    }
    const last = ids.at(-1);
    const done = ids.length < deliveriesPerPart || last === undefined;
    const next: RedeliveryJob = {
      ...job,
      from: last === undefined ? job.from : `${last}~`,
      redelivered: job.redelivered + count,
      status: done ? "done" : "running",
      updatedAt: new Date(now).toISOString(),
    };
    putJob(write, { value: next, version });
    await committer.commit(write);
    return !done;
  }

  // Each sweep reads some jobs, and the next one continues where it stopped.
  let after: Key | null = null;

  async function sweep(): Promise<void> {
    const { jobs, next } = await listJobs(kv, after, jobsPerSweep);
    after = next;
    const running = jobs.filter(({ value }) => value.status !== "done");
    for (const { value } of running) await goOn(value);
    if (running.length > 0) await dispatcher.poll();
  }

  async function goOn({ projectId, id }: RedeliveryJob): Promise<void> {
    deps.metrics.repairs.redelivery.add();
    for (let part = 0; part < partsPerSweep; part++) {
      const current = await readJob(kv, projectId, id);
      if (current?.value.status !== "running" || !(await doPart(current))) break;
    }
  }

  return {
    async one(projectId, deliveryId, by) {
      for (;;) {
        const [found] = await readDeliveries(kv, [{ projectId, id: deliveryId }]);
        if (!found) throw notFound("delivery");
        if (found.value.status === "pending") {
          const message = "This delivery is still pending: it is retried by itself.";
          throw badRequest(null, message, "delivery_pending");
        }
        const again = redelivered(found.value, clock.now());
        const write = emptyWrite();
        write.checks.push({ key: deliveryKey(projectId, deliveryId), version: found.version });
        putDelivery(write, found.value, again);
        const { subscriptionId, eventType } = again;
        const detail = { subscriptionId, eventType };
        const auditAction = {
          by,
          action: "delivery.redelivered" as const,
          target: deliveryId,
          detail,
        };
        write.sets.push(auditRow(deps, projectId, auditAction));
        if ((await committer.commit(write)) === null) continue;
        await dispatcher.poll();
        return again;
      }
    },
    async all(projectId, { subscriptionId, since }, by) {
      const now = clock.now();
      const stamp = new Date(now).toISOString();
      const job: RedeliveryJob = {
        id: deps.id("job"),
        projectId,
        subscriptionId,
        from: firstId(Math.min(Math.max(0, since), now)),
        until: lastId(now),
        redelivered: 0,
        status: "running",
        createdAt: stamp,
        updatedAt: stamp,
      };
      const write = emptyWrite();
      putJob(write, { value: job, version: null });
      const detail = { jobId: job.id, since: new Date(Math.max(0, since)).toISOString() };
      const auditAction = {
        by,
        action: "webhook.redelivered" as const,
        target: subscriptionId,
        detail,
      };
      write.sets.push(auditRow(deps, projectId, auditAction));
      await committer.commit(write);
      goOn(job).then(() => dispatcher.poll()).catch((error) =>
        deps.log("error", "redelivery_failed", { job: job.id, error: String(error) })
      );
      return job;
    },
    async job(projectId, jobId) {
      const found = await readJob(kv, projectId, jobId);
      if (!found) throw notFound("redelivery");
      return found.value;
    },
    sweep,
  };
}

/** Reads the redelivery, or null. */
async function readJob(
  kv: Kv,
  projectId: string,
  jobId: string,
): Promise<Versioned<RedeliveryJob> | null> {
  const { value, version } = await kv.get(redeliveryJobKey(projectId, jobId));
  return value && { value: fromBytes<RedeliveryJob>(value), version };
}

/**
 * Lists a page of the redeliveries of all projects, after `after`, and where the next page starts;
 * null at the end.
 */
async function listJobs(
  kv: Kv,
  after: Key | null,
  limit: number,
): Promise<{ jobs: Versioned<RedeliveryJob>[]; next: Key | null }> {
  const from = after ? { start: after } : {};
  const rows = await kv.list({ prefix: redeliveryJobsPrefix, ...from, limit: limit + 1 });
  const jobs = rows.slice(0, limit).flatMap(({ value, version }) =>
    value ? [{ value: fromBytes<RedeliveryJob>(value), version }] : []
  );
  return { jobs, next: rows[limit]?.key ?? null };
}

/** Adds the redelivery to the write, checked against the version that was read. */
function putJob(write: Write, { value, version }: Versioned<RedeliveryJob>): void {
  const key = redeliveryJobKey(value.projectId, value.id);
  write.checks.push({ key, version });
  write.sets.push(...withExpiry(redeliveryJobRows, { key, value: toBytes(value) }));
}
