import type { Timeline } from "./timeline.ts";

/** A broken promise. */
export interface Violation {
  invariant: string;
  detail: string;
  /** Milliseconds since the start. */
  elapsed: number;
}

/** Keeps the first broken promise: later ones may be its consequence. */
export class Violations {
  first: Violation | null = null;
  readonly #timeline: Timeline;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** Asserts what must hold. */
  must(holds: boolean, invariant: string, detail: () => string): void {
    if (holds || this.first) return;
    this.first = { invariant, detail: detail(), elapsed: this.#timeline.elapsed };
    this.#timeline.trace.note(this.#timeline.elapsed, `VIOLATED ${invariant}: ${detail()}`);
  }
}
