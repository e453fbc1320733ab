import { overloaded } from "./errors.ts";

/** A request's place among those that the process handles. */
export interface Place {
  /** Keeps the place after the handler returns, until the returned function is called. */
  keep(): () => void;
  /** Gives the place back, unless it was kept. A second call is harmless. */
  release(): void;
}

/** Bounds how many places one project, or one key, takes: others must find room. */
export class PlaceLimiter {
  readonly #taken = new Map<string, number>();
  readonly #most: number;
  readonly #refused: () => void;

  /** `refused` is called for each request that finds no place. */
  constructor(most: number, refused: () => void) {
    this.#most = most;
    this.#refused = refused;
  }

  /** Takes a place in every one of these names. Throws 503 `overloaded`. */
  acquire(...names: readonly string[]): Place {
    if (names.some((name) => (this.#taken.get(name) ?? 0) >= this.#most)) {
      this.#refused();
      throw overloaded();
    }
    for (const name of names) this.#taken.set(name, (this.#taken.get(name) ?? 0) + 1);
    let state: "taken" | "kept" | "free" = "taken";
    const free = () => {
      if (state !== "free") names.forEach((name) => this.#giveBack(name));
      state = "free";
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
