import type { Clock } from "../../src/base/clock.ts";

/** A clock that moves only when a test moves it. */
export interface HandClock extends Clock {
  /** Advances by this time, and runs everything that falls due in between, in order. */
  advance(ms: number): Promise<void>;
  /** Sets the clock, as its owner or the network would: no time passes. */
  set(byMs: number): void;
  /** How many timers are waiting. */
  readonly waiting: number;
}

interface Timer {
  at: number;
  work: () => void;
}

/** Creates such a clock at a fixed time. */
export function createHandClock(start = Date.UTC(2026, 0, 1)): HandClock {
  let now = start;
  let setBy = 0;
  const timers = new Set<Timer>();
  const after = (ms: number, work: () => void) => {
    // Whole milliseconds, as real clocks count: ids contain nothing finer.
    const timer = { at: now + Math.ceil(ms), work };
    timers.add(timer);
    return () => void timers.delete(timer);
  };
  return {
    now: () => now + setBy,
    set: (byMs) => void (setBy += byMs),
    elapsed: () => now - start,
    after,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve();
        // A sleep of zero only lets other work run.
        if (ms <= 0) return void setTimeout(resolve, 0);
        const cancel = after(ms, done);
        signal?.addEventListener("abort", done, { once: true });
        function done() {
          cancel();
          signal?.removeEventListener("abort", done);
          resolve();
        }
      }),
    async advance(ms) {
      const end = now + ms;
      await settle();
      for (;;) {
        const next = [...timers].sort((a, b) => a.at - b.at)[0];
        if (!next || next.at > end) break;
        now = Math.max(now, next.at);
        timers.delete(next);
        next.work();
        await settle();
      }
      now = end;
      await settle();
    },
    get waiting() {
      return timers.size;
    },
  };
}

/**
 * Counts how often this clock is read from now on. Work that yields reads it at each step, so that
 * this shows how much was done, however slow the machine is.
 */
export function countReads(clock: HandClock): () => number {
  const { elapsed } = clock;
  let reads = 0;
  clock.elapsed = () => {
    reads++;
    return elapsed();
  };
  return () => reads;
}

/** Lets reads and writes that are under way in the in-memory store complete. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 0));
}
