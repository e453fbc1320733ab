import { overloaded } from "./errors.ts";

/** A request's place among those that the process handles. */
export interface Place {
  /** Keeps the place after the handler returns, until the returned function is called. */
  keep(): () => void;
  /** Gives the place back, unless it was kept. A second call is harmless. */
  release(): void;
}

/** Bounds how many places one sender takes, such as a project or an address: others find room. */
export class PlaceLimiter {
  readonly #taken = new Map<string, number>();
  readonly #most: number;
  readonly #mostOfAll: number;
  readonly #refused: () => void;
  #all = 0;

  /**
   * `each` is the most of one name, `all` that of all requests. `refused` is called for each
   * request that finds no place.
   */
  constructor({ each, all = Infinity }: { each: number; all?: number }, refused: () => void) {
    this.#most = each;
    this.#mostOfAll = all;
    this.#refused = refused;
  }

  /** Takes a place in every one of these names. Throws 503 `overloaded`. */
  acquire(...names: readonly string[]): Place {
    const isTaken = (name: string) => (this.#taken.get(name) ?? 0) >= this.#most;
    if (this.#all >= this.#mostOfAll || names.some(isTaken)) {
      this.#refused();
      throw overloaded();
    }
    for (const name of names) this.#taken.set(name, (this.#taken.get(name) ?? 0) + 1);
    this.#all++;
    let state: "taken" | "kept" | "free" = "taken";
    const free = () => {
      if (state === "free") return;
      state = "free";
      this.#all--;
      names.forEach((name) => this.#giveBack(name));
    };
    return {
      keep() {
        state = "kept";
        return free;
      },
      release() {
        if (state === "taken") free();
      },
    };
  }

  #giveBack(name: string): void {
    const left = (this.#taken.get(name) ?? 1) - 1;
    if (left > 0) this.#taken.set(name, left);
    else this.#taken.delete(name);
  }
}
