/**
 * How many requests there were, and what became of them: `requests` are `calls`, `refused` and
 * `repeated` ones; `calls` are those that failed, were canceled, or completed.
 */
export interface RequestCounts {
  /** All requests of API keys to endpoints that have a price, whatever became of them. */
  requests: number;
  /** Requests that were sent to a model. */
  calls: number;
  /** Calls that ended with an error; some were charged for what they had produced. */
  failed: number;
  /** Calls whose caller disconnected. */
  canceled: number;
  /** Requests that were not sent: for lack of money, by a limit, or because they were wrong. */
  refused: number;
  /** Requests that were answered with an earlier response: from the cache, or under their key. */
  repeated: number;
}

/** Returns the counts in the values of a model or key; repeated ones follow the canceled ones. */
export function countsIn(values: readonly bigint[], canceledPosition: number): RequestCounts {
  const at = (position: number) => Number(values[position] ?? 0n);
  const [requests, failed, refused] = [at(0), at(1), at(2)];
  const repeated = at(canceledPosition + 1);
  const calls = requests - refused - repeated;
  return { requests, calls, failed, canceled: at(canceledPosition), refused, repeated };
}

/** Adds calls whose process died before they ended: nothing else counts those. */
export function withLost(counts: RequestCounts, lost: number): RequestCounts {
  const { requests, calls, failed } = counts;
  return { ...counts, requests: requests + lost, calls: calls + lost, failed: failed + lost };
}

/** The part of calls that failed, in percent; 0 without calls. */
export function errorRateOf({ calls, failed }: Pick<RequestCounts, "calls" | "failed">): number {
  return calls === 0 ? 0 : (failed / calls) * 100;
}
