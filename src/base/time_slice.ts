import { memoizeByObject } from "./memoize_by_object.ts";
import type { Clock } from "./clock.ts";

/** How long a count keeps everything else waiting, in milliseconds, but for one slice more. */
const stretchMs = 5;

/** Those who wait to go on: between two of them everybody else has a turn. */
const lineOf = memoizeByObject((_clock: Clock) => ({ last: Promise.resolve() }));

/** A stretch of work that others have to wait for, from now on or from its last pause. */
export class TimeSlice {
  readonly #clock: Clock;
  #since: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#since = clock.elapsed();
  }

  /** Whether others have waited long enough. */
  get expired(): boolean {
    return this.#clock.elapsed() - this.#since >= stretchMs;
  }

  /** Lets others run; of all those who pause, one goes on at a time. */
  async yield(): Promise<void> {
    const line = lineOf(this.#clock);
    line.last = line.last.then(() => this.#clock.sleep(0));
    await line.last;
    this.#since = this.#clock.elapsed();
  }
}
