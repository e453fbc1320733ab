import type { Clock } from "../base/clock.ts";

const tickMs = 40;
/** How many reads of one tick run without a wait: a client with little to read never waits. */
const freeReads = 64;

/**
 * Gives every body its turn. Deno completes a read at once if data is available, ahead of all reads
 * that wait: of 1,000 streams, those read last were read again, and others not for seconds. With a
 * pause after a read, the next one gets more, which also costs less.
 */
export class Pace {
  readonly #clock: Pick<Clock, "after" | "elapsed">;
  #startedAt = 0;
  #reads = 0;
  #next: PromiseWithResolvers<void> | null = null;

  constructor(clock: Pick<Clock, "after" | "elapsed">) {
    this.#clock = clock;
  }

  /** Returns what a read has to wait for; null when it may start now. */
  turn(): Promise<void> | null {
    if (!this.#next && this.#clock.elapsed() - this.#startedAt >= tickMs) this.#begin();
    if (this.#reads++ < freeReads) return null;
    this.#next ??= this.#plan();
    return this.#next.promise;
  }

  #begin(): void {
    this.#startedAt = this.#clock.elapsed();
    this.#reads = 0;
  }

  #plan(): PromiseWithResolvers<void> {
    const next = Promise.withResolvers<void>();
    this.#clock.after(tickMs, () => {
      this.#next = null;
      this.#begin();
      next.resolve();
    });
    return next;
  }
}
