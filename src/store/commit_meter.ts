/** A count that only grows. */
export interface StoreCounter {
  add(count?: number): void;
}

/** Counts commits. The metrics of the process are one such meter. */
export interface CommitMeter {
  /** Atomic writes, by their outcome. */
  commits: Readonly<Record<"landed" | "refused" | "failed", StoreCounter>>;
  /** The time from an atomic write's start to its known outcome, in ms. */
  commitTime: { observeMs(ms: number): void };
  /** Writes that are combined into one atomic write. */
  commitWrites: { observe(writes: number): void };
  /** Writes that are sent again. */
  retried: StoreCounter;
  /** Outcomes that the store did not report, as their markers tell them. */
  markers: Readonly<Record<"landed" | "not_landed" | "unknown", StoreCounter>>;
}
