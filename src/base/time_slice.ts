import { memoizeByObject } from "./memoize_by_object.ts";
import type { Clock } from "./clock.ts";

/** How long synchronous work may block other requests before it yields, in milliseconds. */
const sliceMs = 5;

/** Yielding work queues here, so that other requests run between any two of them. */
const lineOf = memoizeByObject((_clock: Clock) => ({ last: Promise.resolve() }));

/** A slice of work that blocks other requests, since its start or its last yield. */
export class TimeSlice {
  readonly #clock: Clock;
  #since: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.elapsed();
  }

  /** Whether the slice is used up. */
  get expired(): boolean {
    return this.#clock.elapsed() - this.#since >= sliceMs;
  }

  /** Lets other requests run. Of all yielding work, one continues at a time. */
  async yield(): Promise<void> {
    const line = lineOf(this.#clock);
    line.last = line.last.then(() => this.#clock.sleep(0));
    await line.last;
    this.#since = this.#clock.elapsed();
  }
}
