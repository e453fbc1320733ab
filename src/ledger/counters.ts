/** What a user has used of a project's limits. Kept only where there are any. */
export interface Counters {
  /** When requests and tokens will be there again in full, in ms. */
  requests: number;
  tokens: number;
  /** `YYYY-MM-DD` and `YYYY-MM`, UTC, and what was charged in them: decimal strings. */
  day: string;
  daySpent: string;
  month: string;
  monthSpent: string;
}

/** Before anything was counted. */
export const noCounters: Counters = {
  requests: 0,
  tokens: 0,
  day: "",
  daySpent: "0",
  month: "",
  monthSpent: "0",
};
