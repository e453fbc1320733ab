import { toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { keyText } from "./batch.ts";
import { rowTurnKey, rowWaiterKey, rowWaitersPrefix } from "./keys.ts";
import { emptyWrite, type Key, type Row, type Write } from "./kv.ts";
import { awaitTurn, type StoredTurn } from "./turn_wait.ts";

/**
 * Turns of processes on rows that several of them write at once. They only save refused writes:
 * whether a write lands is decided by its checks alone, whoever has the turn.
 */
interface RowTurns {
  /**
   * Waits for this process's turn, where processes contend for the row. Returns the row as it was
   * then read; null where there was nothing to wait for. Throws when the store cannot be read.
   */
  wait(row: Key): Promise<Row | null>;
  /**
   * Returns the rows to write together with the row. `left` is how many operations wait here for
   * the next write. Where the row is written again and again, also looks for other processes that
   * wait.
   */
  step(row: Key, left: number): TurnStep;
  /** Reports that the row was written with this step, and how long that took, in ms. */
  written(row: Key, ms: number, step: TurnStep): void;
  /** Reports that a write of the row was refused: another process has written it. */
  refused(row: Key): void;
  /** Reports that nothing is left to write here: the turn of this process ends. */
  rest(row: Key): void;
  /** Whether this process has to wait for its turn. */
  mustWait(row: Key): boolean;
}

/** The changes to write with a row for which processes contend. */
interface TurnStep extends Pick<Write, "sets" | "deletes"> {
  /** Whether the turn of this process ends with the write. */
  ends: boolean;
}

/** A row that this process writes often, or that others write too. */
interface Contention {
  /** Whether other processes were found to write the row. */
  isMet: boolean;
  metAt: number;
  /** How many writes were refused since the last that landed. */
  refusals: number;
  /** Whether this process may write the row. */
  isOurs: boolean;
  /** When this process's turn began, and how often it has written since. */
  since: number;
  writes: number;
  /** The wait for the next turn, from the end of the last one on where more is expected. */
  begun: Promise<Row> | null;
  /** The processes that wait for their turn, in order. */
  queue: string[];
  /** Processes that have said, since the queue was written, that they wait. */
  newcomers: string[];
  lookedAt: number;
}

const refusalsMin = 2;
/** How long no other process must have written a row, in ms, for processes to contend no more. */
const forgottenAfterMs = 1_000;
const rowsMax = 1_000;
/**
 * After how many writes a process looks for others where it has found none, and how often where it
 * has found some.
 */
const lookAfterWrites = 8;
const lookEveryMs = 250;
const lookAgainMs = 15;
const newcomersMax = 100;
/** How many writes a turn lasts, and the bounds of its length, in ms. */
const turnWrites = 5;
const turnMinMs = 20;
const turnMaxMs = 120;
/** How many waiting operations are worth another write in the same turn. */
const worthWrite = 64;

/** How long a turn that has nothing to write waits for operations. */
const lingerMs = 3;

const nothing: TurnStep = { sets: [], deletes: [], ends: false };

/** The turns in a store that is not shared: no other process writes its rows. */
const noTurns: RowTurns = {
  wait: () => Promise.resolve(null),
  step: () => nothing,
  written() {},
  refused() {},
  rest() {},
  mustWait: () => false,
};

/** Creates the turns of this process. */
export function createRowTurns(deps: Pick<Deps, "kv" | "clock" | "id">): RowTurns {
  const { kv, clock } = deps;
  if (!kv.limits.isShared) return noTurns;
  const own = deps.id("prc");
  const rows = new Map<string, Contention>();
  let writeMs = 0;

  function find(row: Key): Contention | null {
    const name = keyText(row);
    const found = rows.get(name);
    if (!found) return null;
    if (found.begun || clock.elapsed() - found.metAt < forgottenAfterMs) return found;
    rows.delete(name);
    return null;
  }

  function open(row: Key): Contention {
    const known = find(row);
    if (known) return known;
    const [oldest] = rows.keys();
    if (rows.size >= rowsMax && oldest !== undefined) rows.delete(oldest);
    const made = { ...unmet, metAt: clock.elapsed(), lookedAt: clock.elapsed() };
    rows.set(keyText(row), made);
    return made;
  }

  /** Finds processes that have said that they wait. */
  async function look(row: Key, seen: Contention): Promise<void> {
    const now = clock.elapsed();
    if (!seen.isMet && seen.writes < lookAfterWrites) return;
    if (now - seen.lookedAt < (seen.isMet ? lookAgainMs : lookEveryMs)) return;
    seen.lookedAt = now;
    const prefix = rowWaitersPrefix(row);
    const found = await kv.list({ prefix, limit: newcomersMax });
    seen.newcomers = found.map(({ key }) => String(key[prefix.length])).filter((id) => id !== own);
    if (seen.newcomers.length === 0) return;
    seen.metAt = clock.elapsed();
    if (!seen.isMet) Object.assign(seen, { isMet: true, isOurs: true, since: clock.elapsed() });
  }

  function isOver({ since }: Contention, left: number): boolean {
    const lastsMs = clock.elapsed() - since + writeMs;
    const turnMs = Math.min(Math.max(turnWrites * writeMs, turnMinMs), turnMaxMs);
    return lastsMs >= turnMs || (lastsMs >= turnMinMs && left < worthWrite);
  }

  /**
   * Hands the turn to the process that waits longest. With more to come, this process waits as the
   * last.
   */
  function handOver(row: Key, seen: Contention, isMore: boolean): TurnStep {
    const { queue, newcomers } = seen;
    const [holder, ...others] = [...queue, ...newcomers.filter((id) => !queue.includes(id))];
    if (holder === undefined) return nothing;
    const turn: StoredTurn = { holder, waiting: isMore ? [...others, own] : others };
    return {
      sets: [{ key: rowTurnKey(row), value: toBytes(turn) }],
      deletes: [own, ...newcomers].map((id) => rowWaiterKey(row, id)),
      ends: true,
    };
  }

  function end(seen: Contention): void {
    Object.assign(seen, { isOurs: false, queue: [], newcomers: [], metAt: clock.elapsed() });
  }

  /** Waits for the next turn of this process. `isQueued`: the stored turn names it already. */
  function begin(row: Key, seen: Contention, isQueued: boolean): Promise<Row> {
    // Turns can be as short as a write: what is found beside it would come too late.
    look(row, seen).catch(() => {});
    return seen.begun ??= awaitTurn(deps, { own, row, writeMs, isQueued }).then((begun) => {
      const now = clock.elapsed();
      const queue = (begun.stored?.waiting ?? []).filter((id) => id !== own);
      Object.assign(seen, { isOurs: true, since: now, metAt: now, refusals: 0, queue });
      return begun.row;
    }).finally(() => void (seen.begun = null));
  }

  /** Ends a turn for which there is nothing to write, also for a moment. */
  async function restAfter(row: Key, seen: Contention): Promise<void> {
    const { since, writes } = seen;
    await clock.sleep(lingerMs);
    if (!seen.isOurs || seen.since !== since || seen.writes !== writes) return;
    const { sets, deletes, ends } = handOver(row, seen, false);
    if (!ends) return;
    end(seen);
    await kv.atomic({ ...emptyWrite(), sets, deletes });
  }

  const mustWait = (seen: Contention | null) => seen !== null && seen.isMet && !seen.isOurs;

  return {
    async wait(row) {
      const seen = find(row);
      if (!seen || !mustWait(seen)) return null;
      return await begin(row, seen, false);
    },
    step(row, left) {
      const seen = open(row);
      seen.writes++;
      look(row, seen).catch(() => {});
      return seen.isMet && isOver(seen, left) ? handOver(row, seen, true) : nothing;
    },
    written(row, ms, { ends }) {
      writeMs = ms;
      const seen = find(row);
      if (seen) seen.refusals = 0;
      if (!seen || !ends) return;
      end(seen);
      seen.writes = 0;
      // More is expected. Its turn is given on where nothing has come.
      begin(row, seen, true).then(() => restAfter(row, seen)).catch(() => {});
    },
    refused(row) {
      const seen = open(row);
      seen.refusals++;
      seen.metAt = clock.elapsed();
      seen.isOurs = false;
      if (seen.refusals >= refusalsMin) seen.isMet = true;
    },
    rest(row) {
      const seen = find(row);
      if (seen?.isMet && seen.isOurs) restAfter(row, seen).catch(() => {});
    },
    mustWait: (row) => mustWait(find(row)),
  };
}

const unmet: Omit<Contention, "metAt" | "lookedAt"> = {
  isMet: false,
  refusals: 0,
  isOurs: false,
  since: 0,
  writes: 0,
  begun: null,
  queue: [],
  newcomers: [],
};
