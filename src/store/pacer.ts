import type { Clock } from "../base/clock.ts";

interface PacerOptions {
  /** The most work under way at once. */
  inFlight: number;
  clock: Pick<Clock, "elapsed" | "after">;
  /** Starts the next work, for everything that waits; null when nothing can start now. */
  start(): Promise<void> | null;
}

/** Decides when work for a store begins, so that requests which arrive meanwhile go together. */
interface Pacer {
  /** Reports that something waits: work starts now, later, or when some ends. */
  wake(): void;
  /** Resolves when nothing is under way and nothing waits to start. */
  idle(): Promise<void>;
}

/**
 * How long after the start of the last work another one may start beside it. A near store has
 * answered by then: many requests in one call cost it less than several calls.
 */
const besideMs = 4;

/** Starts work one after the other, and some at once where the store is far away. */
export function createPacer({ inFlight, clock, start }: PacerOptions): Pacer {
  let running = 0;
  let lastStart = -Infinity;
  let cancelTimer: (() => void) | null = null;
  const waiting: (() => void)[] = [];

  function wake(): void {
    while (running < inFlight) {
      if (running > 0 && !mayStartBeside()) return;
      const work = start();
      if (!work) break;
      running++;
      if (inFlight > 1) lastStart = clock.elapsed();
      work.then(ended, ended);
    }
    if (running === 0) waiting.splice(0).forEach((resolve) => resolve());
  }

  function mayStartBeside(): boolean {
    const waitMs = lastStart + besideMs - clock.elapsed();
    if (waitMs <= 0) return true;
    cancelTimer ??= clock.after(waitMs, () => {
      cancelTimer = null;
      wake();
    });
    return false;
  }

  function ended(): void {
    running--;
    wake();
  }

  return {
    wake,
    idle: () => running === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve)),
  };
}
