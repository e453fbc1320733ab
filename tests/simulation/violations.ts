import type { Timeline } from "./timeline.ts";

/** A promise that was broken. */
export interface Violation {
  invariant: string;
  detail: string;
  /** Milliseconds since the start. */
  elapsed: number;
}

/** Keeps the first promise that was broken: what comes after it may be its consequence. */
export class Violations {
  first: Violation | null = null;
  readonly #timeline: Timeline;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** States what must hold. */
  must(holds: boolean, invariant: string, detail: () => string): void {
    if (holds || this.first) return;
    this.first = { invariant, detail: detail(), elapsed: this.#timeline.elapsed };
    this.#timeline.trace.note(this.#timeline.elapsed, `VIOLATED ${invariant}: ${detail()}`);
  }
}
