import type { Clock } from "./clock.ts";

interface Window {
  endsAt: number;
  count: number;
}

/** So many names are known at once. When they are used up, a new one has no first. */
const namesMax = 10_000;

/**
 * Tells the first few of each name within a time from those that follow, in bounded memory: for
 * what anyone can cause as often as they like, under ever new names.
 */
export class Bursts {
  readonly #windows = new Map<string, Window>();
  readonly #clock: Pick<Clock, "elapsed">;
  readonly #first: number;
  readonly #everyMs: number;

  /** The first `first` of a name in `everyMs`, from when the name was first seen. */
  constructor(
    clock: Pick<Clock, "elapsed">,
    { first, everyMs }: { first: number; everyMs: number },
  ) {
    this.#clock = clock;
    this.#first = first;
    this.#everyMs = everyMs;
  }

  /** Counts one of the name. Whether it is among the first. */
  isFirst(name: string): boolean {
    const now = this.#clock.elapsed();
    const window = this.#windows.get(name);
    if (window && window.endsAt > now) return ++window.count <= this.#first;
    if (!window && this.#windows.size >= namesMax) this.#forgetEnded(now);
    if (!window && this.#windows.size >= namesMax) return false;
    this.#windows.set(name, { endsAt: now + this.#everyMs, count: 1 });
    return true;
  }

  #forgetEnded(now: number): void {
    // Windows are as long as each other: the oldest end first.
    for (const [name, { endsAt }] of this.#windows) {
      if (endsAt > now) return;
      this.#windows.delete(name);
    }
  }
}

/** What one user, or one sender, may cause of a kind before it is only counted. */
export const ownBurst = { first: 10, everyMs: 60_000 } as const;
/** The same of all users of a project together. */
export const projectBurst = { first: 10, everyMs: 1_000 } as const;
