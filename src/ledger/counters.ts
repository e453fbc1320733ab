/** What a user has used of a project's rates. Kept only where there are any. */
export interface Counters {
  /** When requests and tokens will be there again in full, in ms. */
  requests: number;
  tokens: number;
}

/** Before anything was counted. */
export const noCounters: Counters = { requests: 0, tokens: 0 };
