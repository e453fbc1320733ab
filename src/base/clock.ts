/** Time, and everything that waits for it. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds with their fractions since some moment: never goes back, for durations. */
  elapsed(): number;
  /** Resolves after so long, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `work` after so long; the returned function takes that back. */
  after(ms: number, work: () => void): () => void;
}
