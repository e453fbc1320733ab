import { BoundedMap } from "./bounded_map.ts";
import { minuteMs, type RateState, rateState } from "./rate.ts";

/**
 * Limits by the minute in the memory of one process, each by its name (see `rateState`). When there
 * are too many names, those are forgotten first that have everything available again, and then
 * those that were taken from longest ago: they start anew.
 */
export class RateTable {
  readonly #now: () => number;
  /** When everything taken from a name is available again. */
  readonly #usedUp: BoundedMap<string, number>;

  /** `now` is a clock in ms that nobody sets; `max` is the most names. */
  constructor(now: () => number, max = 10_000) {
    this.#now = now;
    this.#usedUp = new BoundedMap(max, { isOver: (usedUp) => usedUp <= now() });
  }

  /** The state of a name whose limit is `limit` a minute; takes nothing. */
  state(name: string, limit: number): RateState {
    return rateState(this.#usedUp.get(name) ?? 0, limit, this.#now());
  }

  /**
   * Takes `count` from a name, or gives back what is less than none. Returns by how many ms that
   * moves it on.
   */
  take(name: string, { count, limit }: { count: number; limit: number }): number {
    const ms = (count * minuteMs) / limit;
    this.move(name, ms);
    return ms;
  }

  /** Moves a name on by so many ms, as what another process has taken. */
  move(name: string, ms: number): void {
    this.#usedUp.set(name, Math.max(this.#usedUp.get(name) ?? 0, this.#now()) + ms);
  }

  /** Whether nothing is known of any name. */
  get isEmpty(): boolean {
    return this.#usedUp.size === 0;
  }
}
