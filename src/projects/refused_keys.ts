import { errorFields } from "../base/errors.ts";
import { minuteMs } from "../base/rate.ts";
import type { Deps } from "../deps.ts";
import { emptyWrite } from "../store/kv.ts";
import { type AuditActor, auditRow } from "./audit.ts";

/** A wrong key: what it was tried for, and by whom. */
interface RefusedKey {
  action: "admin.key_refused" | "console.sign_in_refused" | "console.key_refused";
  by: AuditActor;
  /** In which project's trail it is recorded; null for the instance's own. */
  projectId: string | null;
}

/** Records wrong keys in the audit trails, and never the keys. */
export interface RefusedKeys {
  /**
   * Counts a wrong key. The first one of an address in a minute is recorded at once, the count of
   * the others with the next flush. Never rejects: an attempt is refused whether recorded or not.
   */
  note(refused: RefusedKey): Promise<void>;
  /** Writes the counts that have grown. */
  flush(): Promise<void>;
}

/**
 * Rows of one process. Beyond them, attempts share a row an hour for each action, so that nobody
 * fills the store with attempts from many addresses: at most 572 rows a day.
 */
const rowsPerMinute = 10;
const rowsPerDay = 500;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** One row of a trail, while its count may grow. */
interface CountedRow {
  readonly refused: RefusedKey;
  readonly id: string;
  readonly at: number;
  readonly until: number;
  count: number;
  written: number;
}

/** Creates the record of wrong keys. */
export function createRefusedKeys(
  { committer, clock, id, log }: Pick<Deps, "committer" | "clock" | "id" | "log">,
): RefusedKeys {
  const rows = new Map<string, CountedRow>();
  let minute = { at: 0, rows: 0 };
  let day = { at: 0, rows: 0 };

  /** Whether another row may be created now. */
  function takeRow(now: number): boolean {
    if (Math.floor(now / minuteMs) !== minute.at) {
      minute = { at: Math.floor(now / minuteMs), rows: 0 };
    }
    if (Math.floor(now / dayMs) !== day.at) day = { at: Math.floor(now / dayMs), rows: 0 };
    if (minute.rows >= rowsPerMinute || day.rows >= rowsPerDay) return false;
    minute.rows++;
    day.rows++;
    return true;
  }

  function rowAt(name: string, now: number, made: () => Pick<CountedRow, "refused" | "until">) {
    const open = rows.get(name);
    if (open && open.at <= now && now < open.until) return open;
    const row = { ...made(), id: id("aud"), at: now, count: 0, written: 0 };
    rows.set(name, row);
    return row;
  }

  function rowOf(refused: RefusedKey): CountedRow {
    const now = clock.now();
    const { action, by, projectId } = refused;
    const name = JSON.stringify([projectId, action, by.actor.id, by.address]);
    const open = rows.get(name);
    if ((open && now < open.until) || takeRow(now)) {
      return rowAt(name, now, () => ({ refused, until: now + minuteMs }));
    }
    const others = { action, by: byUnknown(by.via), projectId: null };
    return rowAt(action, now, () => ({ refused: others, until: now + hourMs }));
  }

  async function write(row: CountedRow): Promise<void> {
    const { refused: { action, by, projectId }, count, at } = row;
    const same = { id: () => row.id, clock: { now: () => at } };
    const auditAction = { by, action, target: projectId ?? "all", detail: { count } };
    const { key, value } = auditRow(same, projectId, auditAction);
    try {
      await committer.commit({ ...emptyWrite(), sets: [{ key, value }] });
      row.written = count;
    } catch (error) {
      log("warn", "refused_key_not_recorded", errorFields(error));
    }
  }

  return {
    async note(refused) {
      const row = rowOf(refused);
      row.count++;
      if (row.count === 1) await write(row);
    },
    async flush() {
      const now = clock.now();
      for (const [name, row] of rows) {
        if (row.count > row.written) await write(row);
        if (row.until <= now && row.written === row.count) rows.delete(name);
      }
    },
  };
}

/** The actor of what a wrong key was tried for. */
export function byUnknown(via: AuditActor["via"], address: string | null = null): AuditActor {
  const actor = { type: "unknown", id: "unknown" } as const;
  return { actor, via, ...(address === null ? {} : { address }) };
}
