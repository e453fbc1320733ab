import { errorFields } from "../base/errors.ts";
import { fromBytes, isObject, type Json, type JsonObject, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { processesPrefix, processKey } from "../store/keys.ts";
import { emptyWrite, type Key, type Row } from "../store/kv.ts";

/** One subject on which the processes of a store tell each other. */
export interface FleetPart {
  /** What this process tells the others; null for nothing. Called at each beat. */
  say(): Json | Promise<Json>;
  /** What the other processes that are alive have told last, by their ids. */
  hear(others: ReadonlyMap<string, Json>): void;
}

/**
 * The processes that share a store. Each has one row, which it writes at each beat, and reads those
 * of the others. Where a store is one process's own, there is nobody to tell and nothing happens.
 */
export interface Fleet {
  /** Adds a subject. Its name is the same in all processes, also of other versions. */
  join(name: string, part: FleetPart): void;
  /** Tells and hears. Never throws: an error of the store is only logged. */
  beat(): Promise<void>;
  /** Removes this process's row: the others stop counting it at once. */
  leave(): Promise<void>;
  /** How many processes are alive, with this one. */
  readonly size: number;
  /**
   * Whether a part of divided work, by its number, is this process's. Each part is one living
   * process's; while one starts or dies, it may be two's or nobody's for some seconds.
   */
  owns(part: number): boolean;
}

/** How often a process beats: what it tells is known to all within a second. */
export const beatEveryMs = 500;
/** A row that says the same is written again after this time, as a sign of life. */
const lifeSignMs = 2_000;
/** A process whose row has not changed for so long is taken for dead. */
const deadAfterMs = 6_000;
/** Its row is then removed. */
const removedAfterMs = 60_000;
const processesMax = 200;
const logEveryMs = 60_000;

interface Other {
  version: string | null;
  /** When the row was first seen at this version, by a clock that no one sets. */
  seenAt: number;
}

/** Creates the fleet as one process sees it. */
export function createFleet(
  { kv, clock, id, log }: Pick<Deps, "kv" | "clock" | "id" | "log">,
): Fleet {
  const parts = new Map<string, FleetPart>();
  const own = processKey(id("prc"));
  let others = new Map<string, Other>();
  /** The names of the processes that are alive, in order: the same for all of them. */
  let alive = [nameOf(own)];
  let said = "";
  let saidAt = -Infinity;
  let loggedAt = -Infinity;
  let hasLeft = false;

  async function tell(): Promise<void> {
    const told: JsonObject = {};
    for (const [name, part] of parts) {
      const value = await part.say();
      if (value !== null) told[name] = value;
    }
    const text = JSON.stringify(told);
    const now = clock.elapsed();
    if (hasLeft || text === said && now - saidAt < lifeSignMs) return;
    // A number that changes, so that the row gets a new version also where nothing else does.
    const value = toBytes({ ...told, at: clock.now() });
    await kv.atomic({ ...emptyWrite(), sets: [{ key: own, value }] });
    said = text;
    saidAt = now;
  }

  async function hear(): Promise<void> {
    const now = clock.elapsed();
    const rows = (await kv.list({ prefix: processesPrefix, limit: processesMax }))
      .filter(({ key }) => key[1] !== own[1]);
    others = new Map(rows.map((row) => [nameOf(row.key), noted(row, now)]));
    const isAlive = (row: Row) => now - (others.get(nameOf(row.key))?.seenAt ?? now) < deadAfterMs;
    const living = rows.filter(isAlive).map((row) => [nameOf(row.key), readRow(row)] as const);
    alive = [nameOf(own), ...living.map(([name]) => name)].sort();
    for (const [name, part] of parts) {
      const told = living.map(([process, row]) => [process, row[name] ?? null] as const);
      part.hear(new Map(told.filter(([, value]) => value !== null)));
    }
    await removeDead(rows, now);
  }

  function noted(row: Row, now: number): Other {
    const known = others.get(nameOf(row.key));
    return known?.version === row.version ? known : { version: row.version, seenAt: now };
  }

  async function removeDead(rows: readonly Row[], now: number): Promise<void> {
    for (const row of rows) {
      if (now - (others.get(nameOf(row.key))?.seenAt ?? now) < removedAfterMs) continue;
      const { key, version } = row;
      await kv.atomic({ checks: [{ key, version }], sets: [], deletes: [key] });
    }
  }

  return {
    join: (name, part) => void parts.set(name, part),
    async beat() {
      if (!kv.limits.isShared || hasLeft) return;
      try {
        await tell();
        await hear();
      } catch (error) {
        const now = clock.elapsed();
        if (now - loggedAt < logEveryMs) return;
        loggedAt = now;
        log("warn", "fleet_unreachable", errorFields(error));
      }
    },
    async leave() {
      hasLeft = true;
      if (said === "") return;
      await kv.atomic({ ...emptyWrite(), deletes: [own] }).catch(() => {});
    },
    get size() {
      return alive.length;
    },
    owns: (part) => alive[part % alive.length] === nameOf(own),
  };
}

const nameOf = (key: Key) => String(key[1]);

/** Returns what a process's row tells on a subject; null for nothing. */
export function readTold(row: Row, subject: string): Json {
  return readRow(row)[subject] ?? null;
}

/** Returns the value of a process's row with something else told on a subject. */
export function retold(row: Row, subject: string, told: Json): Uint8Array {
  return toBytes({ ...readRow(row), [subject]: told });
}

function readRow({ value }: Row): JsonObject {
  const row = value ? fromBytes<Json>(value) : null;
  return isObject(row) ? row : {};
}
