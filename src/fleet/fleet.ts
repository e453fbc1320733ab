import { withDeadline } from "../base/deadline.ts";
import { errorFields, storeUnavailable } from "../base/errors.ts";
import type { Holders } from "../base/holders.ts";
import { fromBytes, isObject, type Json, type JsonObject } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { processesPrefix } from "../store/keys.ts";
import type { Row } from "../store/kv.ts";
import { createClockWatch } from "./clock_watch.ts";
import { createOwnRow } from "./own_row.ts";
import { Peers } from "./peers.ts";

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
  /** Who holds what in the store, and who of them is gone. */
  readonly holders: Holders;
  /**
   * Calls `work` when a process is found to be gone, and when this one's clock was set. Of several
   * processes that find one gone, the one with the lowest id does.
   */
  onUpset(work: () => Promise<void>): void;
  /** What is wrong with the clocks of the processes, as sentences. */
  warnings(): string[];
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
/** A reading that hangs is given up, so that the next sign of life comes in time. */
const hearDeadlineMs = 2_000;
/** A process that was last known to the others longer ago is announced before it holds anything. */
const announcedForMs = 4_000;
/** When the row of a process that does not change is removed. */
const removedAfterMs = 60_000;
const processesMax = 200;
const logEveryMs = 60_000;

/** Creates the fleet as one process sees it. */
export function createFleet(
  deps: Pick<Deps, "kv" | "clock" | "id" | "log">,
): Fleet {
  const { kv, clock, log } = deps;
  const parts = new Map<string, FleetPart>();
  const own = createOwnRow(deps, () => sayAll(parts));
  const peers = new Peers(2 * beatEveryMs);
  const clocks = createClockWatch(deps, peers);
  /** The ids of the processes that are alive, in order: the same for all of them. */
  let alive = [own.id];
  let readings = 0;
  let loggedAt = -Infinity;
  let hasLeft = false;
  let whenUpset = () => Promise.resolve();

  async function hear(): Promise<void> {
    const reading = ++readings;
    const take = peers.beginReading();
    const { elapsed, now } = { elapsed: clock.elapsed(), now: clock.now() };
    const all = await kv.list({ prefix: processesPrefix, limit: processesMax });
    // A reading that hung is older than what is known by now.
    if (reading !== readings) return;
    const rows = all.filter((row) => !own.isOwn(idOf(row)))
      .map((row) => ({ ...row, id: idOf(row), told: readRow(row) }));
    const isNews = take({
      rows: rows.map(({ id, version, told: { at } }) => ({
        id,
        version,
        at: typeof at === "number" ? at : null,
      })),
      isWhole: all.length < processesMax,
      elapsed,
      now,
    });
    const living = rows.filter(({ id }) => peers.isAlive(id, elapsed));
    alive = [own.id, ...living.map(({ id }) => id)].sort();
    for (const [name, part] of parts) {
      const told = living.map(({ id, told }) => [id, told[name] ?? null] as const);
      part.hear(new Map(told.filter(([, value]) => value !== null)));
    }
    if (isNews && living.every(({ id }) => own.id < id)) upset();
    await removeDead(rows, elapsed);
  }

  /** Not awaited: a sign of life must not wait for it. */
  function upset(): void {
    whenUpset().catch((error) => log("error", "taking_over_failed", errorFields(error)));
  }

  async function removeDead(rows: readonly (Row & { id: string })[], now: number): Promise<void> {
    for (const { id, key, version } of rows) {
      if (peers.silentMs(id, now) < removedAfterMs) continue;
      await kv.atomic({ checks: [{ key, version }], sets: [], deletes: [key] });
    }
  }

  function hearInTime(): Promise<void> {
    const late = () => storeUnavailable(`processes were not read within ${hearDeadlineMs} ms`);
    return withDeadline(clock, hear(), { ms: hearDeadlineMs, late });
  }

  const holders: Holders = {
    get own() {
      return own.id;
    },
    isGone: (holder) => !own.isOwn(holder) && (!kv.limits.isShared || peers.isGone(holder)),
    aheadMs: (holder) => peers.aheadMs(holder),
    announce: () =>
      !kv.limits.isShared || hasLeft || own.knownForMs() < announcedForMs ? null : own.write(),
  };

  return {
    holders,
    onUpset: (work) => void (whenUpset = work),
    warnings: () => clocks.warnings(),
    join: (name, part) => void parts.set(name, part),
    async beat() {
      if (clocks.look()) upset();
      if (!kv.limits.isShared || hasLeft) return;
      try {
        await own.writeUnlessSame();
        await hearInTime();
      } catch (error) {
        const now = clock.elapsed();
        if (now - loggedAt < logEveryMs) return;
        loggedAt = now;
        log("warn", "fleet_unreachable", errorFields(error));
      }
    },
    async leave() {
      hasLeft = true;
      await own.remove();
    },
    get size() {
      return alive.length;
    },
    owns: (part) => alive[part % alive.length] === own.id,
  };
}

async function sayAll(parts: ReadonlyMap<string, FleetPart>): Promise<JsonObject> {
  const told: JsonObject = {};
  for (const [name, part] of parts) {
    const value = await part.say();
    if (value !== null) told[name] = value;
  }
  return told;
}

const idOf = ({ key }: Row) => String(key[1]);

function readRow({ value }: Row): JsonObject {
  const row = value ? fromBytes<Json>(value) : null;
  return isObject(row) ? row : {};
}
