/** Time, and timers. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Milliseconds, with fractions, since some moment: never goes back, for durations. */
  elapsed(): number;
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls `work` after `ms`; the returned function cancels it. */
  after(ms: number, work: () => void): () => void;
}
