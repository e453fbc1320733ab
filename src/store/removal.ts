import { errorFields } from "../base/errors.ts";
import type { KeptKind } from "../base/kept_kinds.ts";
import type { Deps } from "../deps.ts";

/** Removes rows that have ended, of one kind or of several. */
export interface Remover {
  /**
   * Begins to remove rows that have ended, the oldest first, until none is left or the round is
   * late.
   */
  begin(round: Round): void;
}

/** One stretch of time in which all removers of a process work side by side. */
export interface Round {
  /** Rows that have ended by this time are removed. In milliseconds since 1970. */
  readonly now: number;
  /**
   * Whether a part, of `removalParts`, is for this process to remove. Other processes take the
   * other parts.
   */
  owns(part: number): boolean;
  /** Begins work that the round waits for. An error of the work does not stop the rest. */
  add(work: () => Promise<void>): void;
  /**
   * Does one page of work when its turn comes: all removers get turns alike, and few at a time, so
   * that requests do not wait for long. Returns null without doing it where the round is late by
   * then.
   */
  turn<T>(work: () => Promise<T>): Promise<T | null>;
  /** Counts removed rows. */
  removed(kind: KeptKind, count: number): void;
  /** Reports that rows are left, and when the oldest of them ended, in milliseconds since 1970. */
  left(kind: KeptKind, endedAt: number): void;
  /** Reports that not all rows were looked at: another round follows soon, as after `left`. */
  unfinished(): void;
}

/** Into how many parts the work is divided: more than processes that ever share a store. */
export const removalParts = 8;

/** Always the same part for the same text. */
export function partOf(text: string): number {
  let hash = 0;
  for (let at = 0; at < text.length; at++) hash = (31 * hash + text.charCodeAt(at)) % 65_521;
  return hash % removalParts;
}

/** The removal of all rows that are kept for a time. */
export interface Removal {
  /**
   * Works for one round. Where more is left, further rounds follow by themselves, until nothing is.
   */
  run(): Promise<void>;
  /** Since when the oldest row of a kind has waited for its removal, in ms; 0 where none does. */
  behindMs(kind: KeptKind): number;
  /** Ends the round, and begins no other. */
  stop(): void;
}

/** How long a round lasts at most, and the pause before the next one, in ms. */
const roundMs = 3_000;
const pauseMs = 250;
/**
 * How long a round lasts, and the pause after it, while calls are under way: they get two thirds of
 * the time.
 */
const busyRoundMs = 50;
const busyPauseMs = 100;
/** How late rows must be for their removal to be reported, and how often that is done, in ms. */
const lateAfterMs = 10 * 60 * 1000;
const logEveryMs = 60 * 60 * 1000;

interface RemovalOptions {
  removers: readonly Remover[];
  /** Whether a part is for this process to remove. */
  owns(part: number): boolean;
  /** Whether calls are under way, which come first. */
  isBusy(): boolean;
}

/** Creates the removal as one process does it. */
export function createRemoval(
  { kv, clock, log, metrics }: Pick<Deps, "kv" | "clock" | "log" | "metrics">,
  { removers, owns, isBusy }: RemovalOptions,
): Removal {
  let running: Promise<void> | null = null;
  let cancel = () => {};
  let isStopped = false;
  let arrears = new Map<KeptKind, number>();
  let loggedAt = -Infinity;
  let rounds = 0;
  const turns = createTurns(kv.limits.inFlight);

  async function round(): Promise<void> {
    const startedAt = clock.elapsed();
    const isLate = () =>
      isStopped || clock.elapsed() - startedAt >= (isBusy() ? busyRoundMs : roundMs);
    const left = new Map<KeptKind, number>();
    const under: Promise<void>[] = [];
    const errors: unknown[] = [];
    let isFinished = true;
    const thisRound: Round = {
      now: clock.now(),
      owns,
      add: (work) => void under.push(work().catch((error) => void errors.push(error))),
      turn: (work) => turns(async () => isLate() ? null : await work()),
      removed: (kind, count) => metrics.removedRows[kind].add(count),
      left: (kind, endedAt) => void left.set(kind, Math.min(endedAt, left.get(kind) ?? endedAt)),
      unfinished: () => void (isFinished = false),
    };
    // A short round is over before the last one has had a turn: each is the first in its turn.
    const first = rounds++ % removers.length;
    for (const remover of [...removers.slice(first), ...removers.slice(0, first)]) {
      remover.begin(thisRound);
    }
    // Work adds more work.
    for (let work = under.shift(); work; work = under.shift()) await work;
    arrears = left;
    report();
    const isMore = left.size > 0 || !isFinished;
    if (isMore && !isStopped) cancel = clock.after(isBusy() ? busyPauseMs : pauseMs, goOn);
    if (errors.length > 0) throw errors[0];
  }

  function goOn(): void {
    run().catch((error) => {
      if (!isStopped) log("warn", "removal_failed", errorFields(error));
    });
  }

  function run(): Promise<void> {
    cancel();
    if (isStopped) return Promise.resolve();
    return running ??= round().finally(() => running = null);
  }

  function behindMs(kind: KeptKind): number {
    const since = arrears.get(kind);
    return since === undefined ? 0 : Math.max(0, clock.now() - since);
  }

  function report(): void {
    const late = [...arrears.keys()].filter((kind) => behindMs(kind) > lateAfterMs);
    if (late.length === 0 || clock.elapsed() - loggedAt < logEveryMs) return;
    loggedAt = clock.elapsed();
    const seconds = Math.round(Math.max(...late.map(behindMs)) / 1000);
    log("warn", "removal_behind", { kinds: late.sort(), seconds });
  }

  return {
    run,
    behindMs,
    stop() {
      isStopped = true;
      cancel();
    },
  };
}

/** Runs work in the order in which it is asked for, at most `atOnce` pieces at a time. */
function createTurns(atOnce: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let free = atOnce;
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}
