import { fromBytes, toBytes } from "../base/json.ts";
import type { Clock } from "../base/clock.ts";
import { rowTurnKey, rowWaiterKey } from "./keys.ts";
import { emptyWrite, type Key, type Kv, type Row } from "./kv.ts";

/** Whose turn it is to write a row, and who waits for it, in order; by the ids of processes. */
export interface StoredTurn {
  holder: string;
  waiting: string[];
}

interface TurnWaitOptions {
  /** The id of this process. */
  own: string;
  row: Key;
  /** How long a write took of late, in ms. */
  writeMs: number;
  /** Whether this process is in the queue of the stored turn, as far as it knows. */
  isQueued: boolean;
}

/** A row when it is this process's turn to write it, and the turn as it was stored then. */
interface TurnBegun {
  row: Row;
  stored: StoredTurn | null;
}

/** Reads follow one another at this interval, and do not wait for each other. */
const readEveryMs = 3;
const readsMax = 6;
const registerEveryMs = 500;
/** A row that nobody writes for so long, in writes and in ms, has no leader any more. */
const unwrittenWrites = 4;
const unwrittenMinMs = 60;
const unwrittenMaxMs = 400;
/** Who is not known to wait competes after a time, and who is known somewhat later. */
const unknownMaxMs = 400;
const knownMaxMs = 3_000;

/**
 * Waits until the stored turn names this process, or its leader has not written the row for some
 * time: then those who wait take over in their order. Throws when the store cannot be read.
 */
export function awaitTurn(
  deps: { kv: Kv; clock: Pick<Clock, "elapsed" | "after"> },
  options: TurnWaitOptions,
): Promise<TurnBegun> {
  const { kv, clock } = deps;
  const { own, row, writeMs } = options;
  const keys = [rowTurnKey(row), row];
  const unwrittenMs = Math.min(
    Math.max(unwrittenWrites * writeMs, unwrittenMinMs),
    unwrittenMaxMs,
  );
  const startedAt = clock.elapsed();
  let version: string | null | undefined;
  let changedAt = startedAt;
  let registeredAt = -Infinity;

  /** Tells the leader that this process waits. */
  function register(): void {
    const now = clock.elapsed();
    if (now - registeredAt < registerEveryMs) return;
    registeredAt = now;
    const set = { key: rowWaiterKey(row, own), value: toBytes(null) };
    kv.atomic({ ...emptyWrite(), sets: [set] }).catch(() => {});
  }

  function isOurs(stored: StoredTurn | null, found: Row): boolean {
    const now = clock.elapsed();
    if (found.version !== version) changedAt = now;
    version = found.version;
    if (stored?.holder === own) return true;
    const at = stored?.waiting.indexOf(own) ?? -1;
    if (at < 0) register();
    const ahead = at < 0 ? stored?.waiting.length ?? 0 : at;
    return now - changedAt >= unwrittenMs * (1 + ahead) ||
      now - startedAt >= (at < 0 ? unknownMaxMs : knownMaxMs);
  }

  return new Promise((resolve, reject) => {
    let cancel = () => {};
    let underWay = 0;
    let [sent, arrived] = [0, 0];
    const end = (deliver: () => void) => {
      arrived = Infinity;
      cancel();
      deliver();
    };
    const read = async (number: number) => {
      const [turn, found] = await kv.getMany(keys);
      // An earlier read that arrives late tells nothing new.
      if (number < arrived || !turn || !found) return;
      arrived = number;
      const stored = turn.value && fromBytes<StoredTurn>(turn.value);
      if (isOurs(stored, found)) end(() => resolve({ row: found, stored }));
    };
    const round = () => {
      cancel = clock.after(readEveryMs, round);
      if (underWay >= readsMax) return;
      underWay++;
      read(++sent).catch((error) => end(() => reject(error))).finally(() => underWay--);
    };
    if (!options.isQueued) register();
    round();
  });
}
