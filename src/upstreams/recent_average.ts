const halfLifeMs = 60_000;
/**
 * The weight of one value after ten minutes without another. With less weight, the average is
 * unknown.
 */
const weightMin = 2 ** -10;

/** An average in which a value counts half as much after a minute. */
export class RecentAverage {
  #sum = 0;
  #weight = 0;
  #at = 0;

  /** Adds a value; `now` never goes back. */
  add(value: number, now: number): void {
    const left = this.#leftAt(now);
    this.#sum = this.#sum * left + value;
    this.#weight = this.#weight * left + 1;
    this.#at = now;
  }

  /** The average; null where there was no value lately. */
  at(now: number): number | null {
    return this.#weight * this.#leftAt(now) < weightMin ? null : this.#sum / this.#weight;
  }

  #leftAt(now: number): number {
    return 2 ** ((this.#at - now) / halfLifeMs);
  }
}
