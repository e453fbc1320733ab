import { fromBytes, toBytes } from "../base/json.ts";
import { redeliveryJobKey, redeliveryJobsPrefix } from "../store/keys.ts";
import type { Key, Kv, Write } from "../store/kv.ts";
import type { RedeliveryJob } from "./schema.ts";
import type { Versioned } from "./store.ts";

/** The redelivery, or null. */
export async function readJob(
  kv: Kv,
  projectId: string,
  jobId: string,
): Promise<Versioned<RedeliveryJob> | null> {
  const { value, version } = await kv.get(redeliveryJobKey(projectId, jobId));
  return value && { value: fromBytes<RedeliveryJob>(value), version };
}

/** Redeliveries of all projects, from `after` on, and where to go on; null at the end. */
export async function listJobs(
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

/** Adds the end of a redelivery to the write. */
export function removeJob(write: Write, { value, version }: Versioned<RedeliveryJob>): void {
  const key = redeliveryJobKey(value.projectId, value.id);
  write.checks.push({ key, version });
  write.deletes.push(key);
}

/** Adds the redelivery to the write, on the version that it was read in. */
export function putJob(write: Write, { value, version }: Versioned<RedeliveryJob>): void {
  const key = redeliveryJobKey(value.projectId, value.id);
  write.checks.push({ key, version });
  write.sets.push({ key, value: toBytes(value) });
}
