import { BoundedMap } from "../base/bounded_map.ts";
import type { Clock } from "../base/clock.ts";

/** What can be learned: a format that is spoken, a field, a bound, or that something is refused. */
export type Learned = string | number | boolean;

interface Fact {
  value: Learned;
  signs: number;
  /** When the first of these signs was seen, by the clock's `elapsed`. */
  since: number;
  /** Until when it holds without a doubt. */
  until: number;
}

/** Signs that are needed, and the time in which they have to come, in ms. */
const signsNeeded = 2;
const signsWithinMs = 60 * 60_000;
/** How long a fact holds before the usual way is tried again, in ms. */
const believedMs = 10 * 60_000;
/** How long one call has to try the usual way, while the others go on as learned, in ms. */
const tryingMs = 30_000;
const factsMax = 1_000;

/**
 * What one process has learned about an upstream from its errors, for one project. A sign is a call
 * that was refused in the usual way and answered in another one. A fact holds after two signs, and
 * for ten minutes: then one call tries the usual way again. A success of the usual way ends it.
 */
export class LearnedFacts {
  readonly #clock: Pick<Clock, "elapsed">;
  readonly #facts = new BoundedMap<string, Fact>(factsMax);
  /** Names of what has been answered in the usual way. */
  readonly #served = new Set<string>();

  constructor(clock: Pick<Clock, "elapsed">) {
    this.#clock = clock;
  }

  /** Whether there is nothing to be found. */
  get isEmpty(): boolean {
    return this.#facts.size === 0;
  }

  /** The value learned under a name; undefined where the usual way is to be tried. */
  find(name: string): Learned | undefined {
    const fact = this.#facts.get(name);
    if (!fact || fact.signs < signsNeeded) return undefined;
    const now = this.#clock.elapsed();
    if (now < fact.until) return fact.value;
    fact.until = now + tryingMs;
    return undefined;
  }

  /** The value of which there was a sign last, whether it holds or not. */
  lastValue(name: string): Learned | undefined {
    return this.#facts.get(name)?.value;
  }

  /** Adds a sign: in place of the usual way, this value has helped. */
  addSign(name: string, value: Learned): void {
    const now = this.#clock.elapsed();
    const known = this.#facts.get(name);
    const isAgain = known?.value === value &&
      (known.signs >= signsNeeded || now - known.since < signsWithinMs);
    const { signs, since } = isAgain ? known : { signs: 0, since: now };
    this.#facts.set(name, { value, signs: signs + 1, since, until: now + believedMs });
  }

  /** Forgets what was learned under a name: the usual way has succeeded. */
  forget(name: string): void {
    this.#facts.delete(name);
  }

  /** Notes that something has been answered in the usual way, such as a format. */
  noteServed(name: string): void {
    this.#served.add(name);
  }

  /** Whether it has ever been answered in the usual way. */
  hasServed(name: string): boolean {
    return this.#served.has(name);
  }
}
