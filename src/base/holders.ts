/**
 * The processes of one store, as those who hold something there for a time: money for a running
 * call, or the right to attempt a delivery. What a process held is free once it is gone.
 */
export interface Holders {
  /** The id of this process. */
  readonly own: string;
  /** Whether a process has ended. True only where that is certain, or as good as certain. */
  isGone(holder: string): boolean;
  /** By how many ms a process's clock is ahead of this one's; 0 where they agree. */
  aheadMs(holder: string): number;
  /**
   * Makes this process known to the others, before it holds something that they could take for a
   * dead one's. Null where it is known. Rejects with 503 where the store fails.
   */
  announce(): Promise<void> | null;
}
