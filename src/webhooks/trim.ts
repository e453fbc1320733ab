import { firstIdAt } from "../base/ids.ts";
import type { Deps } from "../deps.ts";
import { deliveryKey, logKey, logPrefix, outboxKey, outboxPrefix } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import { createProjectRounds } from "../store/project_rounds.ts";
import { filterName, removeDelivery } from "./delivery_rows.ts";
import type { DeliveryStatus } from "./schema.ts";
import { listEventsBefore, readDeliveries } from "./store.ts";

/**
 * How many rows are removed from one project before the next one, so that a busy project does not
 * delay the others.
 */
const partSize = 40;
/**
 * How long one sweep runs while there is more: a fifth of the interval, in which more is removed
 * than a process delivers in it.
 */
const sweepMs = 3_000;
const dayMs = 24 * 60 * 60 * 1000;
/**
 * An event is kept longer than its deliveries by the longest time that one of them may be pending.
 */
const eventGraceMs = 8 * dayMs;

/**
 * Removes ended deliveries older than the retention, and events without deliveries. Each call does
 * a bounded part, project by project, and continues where the last one stopped.
 */
export function createTrim({ kv, committer, clock, config }: Deps): () => Promise<void> {
  const rowsPerPart = Math.min(partSize, kv.limits.checks - 2);
  const eachProject = createProjectRounds({ kv, clock }, sweepMs);

  /** Returns whether there may be more. */
  async function trimDeliveries(
    projectId: string,
    status: DeliveryStatus,
    before: number,
  ): Promise<boolean> {
    const name = filterName({}, status);
    const rows = await kv.list({
      prefix: logPrefix(projectId, name),
      end: logKey(projectId, name, firstIdAt("dly", before)),
      limit: rowsPerPart,
    });
    const ids = rows.map(({ key }) => ({ projectId, id: String(key[3]) }));
    const found = await readDeliveries(kv, ids);
    const write = emptyWrite();
    for (const row of found) {
      // A delivery that became pending again is kept.
      if (row?.value.status !== status) continue;
      write.checks.push({ key: deliveryKey(projectId, row.value.id), version: row.version });
      removeDelivery(write, row.value);
    }
    if (write.deletes.length === 0) return false;
    return (await committer.commit(write)) !== null && rows.length === rowsPerPart;
  }

  async function trimEvents(projectId: string, beforeId: string): Promise<boolean> {
    const keys = await listEventsBefore(kv, projectId, { beforeId, limit: rowsPerPart });
    if (keys.length === 0) return false;
    await committer.commit({ ...emptyWrite(), deletes: keys });
    return keys.length === rowsPerPart;
  }

  /** An event without deliveries yet is kept, however old: no process may have run since. */
  async function firstKeptEvent(before: number): Promise<string> {
    const beforeId = firstIdAt("evt", before);
    const [waiting] = await kv.list({ prefix: outboxPrefix, end: outboxKey(beforeId), limit: 1 });
    return waiting ? String(waiting.key[1]) : beforeId;
  }

  return async () => {
    const before = clock.now() - config.webhooks.retentionDays * dayMs;
    const eventsBefore = await firstKeptEvent(before - eventGraceMs);
    await eachProject(async ({ key }) => {
      const projectId = String(key[1]);
      const more = [
        await trimDeliveries(projectId, "success", before),
        await trimDeliveries(projectId, "error", before),
      ];
      // After a long pause both are due: an event is read as long as it has deliveries.
      return more.includes(true) || await trimEvents(projectId, eventsBefore);
    });
  };
}
