import type { Clock } from "../deps.ts";

const tickMs = 20;
/** Reads of one tick that do not wait for the next: what is asked little is never waited for. */
const freeReads = 32;

/**
 * Lets every body be read in its turn. Deno completes a read at once that finds something there, ahead
 * of all that are waited for: of 1,000 streams, those that were read last were read again, and others
 * not for seconds. With a pause after a read, more comes with the next, which also costs less.
 */
export class Pace {
  readonly #clock: Pick<Clock, "after">;
  #tick: PromiseWithResolvers<void> | null = null;
  #reads = 0;

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  /** What a read has to wait for; null when it may begin now. */
  turn(): Promise<void> | null {
    const tick = this.#tick ??= this.#begin();
    return this.#reads++ < freeReads ? null : tick.promise;
  }

  #begin(): PromiseWithResolvers<void> {
    const tick = Promise.withResolvers<void>();
    this.#reads = 0;
    this.#clock.after(tickMs, () => {
      this.#tick = null;
      tick.resolve();
    });
    return tick;
  }
}
