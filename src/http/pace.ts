import type { Clock } from "../base/clock.ts";

const tickMs = 40;
/** Reads of one tick that do not wait for the next: what is asked little is never waited for. */
const freeReads = 64;

/**
 * Lets every body be read in its turn. Deno completes a read at once that finds something there,
 * ahead of all that are waited for: of 1,000 streams, those that were read last were read again,
 * and others not for seconds. With a pause after a read, more comes with the next, which also costs
 * less.
 */
export class Pace {
  readonly #clock: Pick<Clock, "after" | "elapsed">;
  #startedAt = 0;
  #reads = 0;
  #next: PromiseWithResolvers<void> | null = null;

  constructor(clock: Pick<Clock, "after" | "elapsed">) {
    this.#clock = clock;
  }

  /** What a read has to wait for; null when it may begin now. */
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
