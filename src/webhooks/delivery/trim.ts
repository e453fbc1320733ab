import { firstIdAt, timeOfId } from "../../base/ids.ts";
import type { Deps } from "../../deps.ts";
import { deliveryKey, logKey, logPrefix, outboxKey, outboxPrefix } from "../../store/keys.ts";
import { emptyWrite, type Row, type Write } from "../../store/kv.ts";
import type { ProjectRows } from "../../store/project_rows.ts";
import { filterName, removeDelivery } from "./delivery_rows.ts";
import type { Delivery, DeliveryStatus } from "../schema.ts";
import { listEventsBefore, readDeliveries, type Versioned } from "../store.ts";

/** The most deliveries that one page removes: each has five rows. */
const deliveriesMax = 40;
const eventsPerPage = 100;
const dayMs = 24 * 60 * 60 * 1000;
/**
 * An event is kept longer than its deliveries by the longest time that one of them may be pending.
 */
const eventGraceMs = 8 * dayMs;

/** Creates the removal of ended deliveries after the retention, and of events after them. */
export function createTrim(
  { kv, committer, config }: Pick<Deps, "kv" | "committer" | "config">,
): readonly ProjectRows[] {
  const deliveriesPerPage = Math.min(deliveriesMax, Math.floor(kv.limits.checks / 2));
  const retentionMs = config.webhooks.retentionDays * dayMs;

  const deliveries = (status: DeliveryStatus): ProjectRows => ({
    kind: "delivery",
    async removePage(project, now) {
      const projectId = String(project.key[1]);
      const name = filterName({}, status);
      const rows = await kv.list({
        prefix: logPrefix(projectId, name),
        end: logKey(projectId, name, firstIdAt("dly", now - retentionMs)),
        limit: deliveriesPerPage,
      });
      const ids = rows.map(({ key }) => ({ projectId, id: String(key[3]) }));
      const found = await readDeliveries(kv, ids);
      const write = emptyWrite();
      for (const [at, row] of rows.entries()) addRemoval(write, { row, status, found: found[at] });
      const isRemoved = rows.length > 0 && await committer.commit(write) !== null;
      const last = ids.at(-1);
      return {
        count: isRemoved ? rows.length : 0,
        // What one of them has become is read again.
        isMore: rows.length > 0 && (!isRemoved || rows.length === deliveriesPerPage),
        endedAt: last ? timeOfId(last.id) + retentionMs : now,
      };
    },
  });

  /** An event without deliveries yet is kept, however old: no process may have run since. */
  async function firstKeptEvent(before: number): Promise<string> {
    const beforeId = firstIdAt("evt", before);
    const [waiting] = await kv.list({ prefix: outboxPrefix, end: outboxKey(beforeId), limit: 1 });
    return waiting ? String(waiting.key[1]) : beforeId;
  }

  /** Whether ended deliveries of a project are yet to be removed. */
  async function hasEndedDeliveries(projectId: string, now: number): Promise<boolean> {
    const end = firstIdAt("dly", now - retentionMs);
    for (const status of ["success", "error"] as const) {
      const name = filterName({}, status);
      const prefix = logPrefix(projectId, name);
      const [row] = await kv.list({ prefix, end: logKey(projectId, name, end), limit: 1 });
      if (row) return true;
    }
    return false;
  }

  const events: ProjectRows = {
    kind: "event",
    async removePage(project, now) {
      const keptMs = retentionMs + eventGraceMs;
      // After a long pause both are due: an event is read as long as it has deliveries.
      if (await hasEndedDeliveries(String(project.key[1]), now)) {
        return { count: 0, isMore: true, endedAt: now };
      }
      const beforeId = await firstKeptEvent(now - keptMs);
      const limit = eventsPerPage;
      const keys = await listEventsBefore(kv, String(project.key[1]), { beforeId, limit });
      if (keys.length > 0) await committer.commit({ ...emptyWrite(), deletes: keys });
      const last = keys.at(-1);
      return {
        count: keys.length,
        isMore: keys.length === limit,
        endedAt: last ? timeOfId(String(last[2])) + keptMs : now,
      };
    },
  };

  return [deliveries("success"), deliveries("error"), events];
}

/** Adds the removal of a delivery that the log has under a status. */
function addRemoval(
  write: Write,
  { row: { key }, status, found }: {
    row: Row;
    status: DeliveryStatus;
    found: Versioned<Delivery> | null | undefined;
  },
): void {
  const [, projectId = "", , id = ""] = key.map(String);
  write.checks.push({ key: deliveryKey(projectId, id), version: found?.version ?? null });
  if (found?.value.status === status) removeDelivery(write, found.value);
  // A delivery that became pending again is kept, and this row of the log is out of date.
  else write.deletes.push(key);
}
