/** A count that only grows. */
export interface StoreCounter {
  add(count?: number): void;
}

/** Where commits are counted. The metrics of the process are one. */
export interface CommitMeter {
  /** Atomic writes, by their outcome. */
  commits: Readonly<Record<"landed" | "refused" | "failed", StoreCounter>>;
  /** From an atomic write's start to its known outcome. */
  commitTime: { observeMs(ms: number): void };
  /** Writes that are combined into one atomic write. */
  commitWrites: { observe(writes: number): void };
  /** Writes that are sent again. */
  retried: StoreCounter;
  /** Outcomes that the store did not report, as their markers tell them. */
  markers: Readonly<Record<"landed" | "not_landed" | "unknown", StoreCounter>>;
}
