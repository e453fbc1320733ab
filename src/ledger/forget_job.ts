import { fromBytes, type Json, toBytes } from "../base/json.ts";
import type { Erasure } from "../store/erase.ts";
import { forgetJobKey, forgetJobsPrefix } from "../store/keys.ts";
import type { Key, Kv } from "../store/kv.ts";
import { listAfter } from "../store/scan.ts";

/** Someone who is being forgotten: what is erased now, and how far it has come. */
export interface ForgetJob extends Erasure {
  /** Whether what is left of the balance is taken. */
  forfeit: boolean;
  /** The eraser at work, and its place. */
  step: string;
  place: Json | null;
  /** Records so far, by what they are. */
  erased: Record<string, number>;
}

/** A job's row. */
export function encodeForgetJob(job: ForgetJob): Uint8Array {
  return toBytes(job);
}

/** The job and the version to check when it is written again, or null. */
export async function readForgetJob(
  kv: Kv,
  projectId: string,
  user: string,
): Promise<{ job: ForgetJob; version: string | null } | null> {
  const { value, version } = await kv.get(forgetJobKey(projectId, user));
  return value && { job: fromBytes<ForgetJob>(value), version };
}

/** Some of those who are being forgotten, after `after`, and where to go on; null at the end. */
export async function listForgetJobs(
  kv: Kv,
  after: Key | null,
  limit: number,
): Promise<{ jobs: ForgetJob[]; next: Key | null }> {
  const rows = await listAfter(kv, forgetJobsPrefix, { after, limit });
  const jobs = rows.flatMap(({ value }) => (value ? [fromBytes<ForgetJob>(value)] : []));
  return { jobs, next: rows.length < limit ? null : rows.at(-1)?.key ?? null };
}
