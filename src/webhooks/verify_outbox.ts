import { timeOfId } from "../base/ids.ts";
import type { Clock } from "../deps.ts";
import { decodeOutbox } from "../events/outbox.ts";
import { eventKey, outboxPrefix } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { count, judgeAtRest, readOrNull, type Scan, scanRows } from "../store/scan.ts";

const rowsPerRead = 100;
/** Rows are taken up within seconds; what a dead process left, at the next start. */
const outboxAgeMaxMs = 2 * 60 * 1000;

/** All events whose deliveries are not written yet: each is there, and has not waited for long. */
export function scanOutbox({ kv, clock }: { kv: Kv; clock: Clock }): Scan {
  async function faultsOf({ key, value }: Row): Promise<string[]> {
    const id = String(key[1]);
    const row = readOrNull(value, decodeOutbox);
    const about = `outbox row ${id}`;
    if (!row) return [`${about} cannot be read`];
    const faults: string[] = [];
    const ageMs = clock.now() - timeOfId(id);
    if (ageMs > outboxAgeMaxMs) faults.push(`${about} waits since ${Math.round(ageMs / 1000)} s`);
    const event = await kv.get(eventKey(row.projectId, id));
    if (!event.value) faults.push(`${about} is of an event that is not there`);
    return faults;
  }

  return scanRows({
    name: "outbox",
    kv,
    prefix: outboxPrefix,
    rowsPerRead,
    async look(rows, counts) {
      count(counts, "outboxRows", rows.length);
      const found = await Promise.all(
        rows.map((row) => judgeAtRest(kv, { key: row.key, counts }, faultsOf)),
      );
      return found.flat();
    },
  });
}
