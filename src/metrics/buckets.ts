/** Bucket bounds of latencies, in seconds. */
export const latencyBuckets: readonly number[] = [
  ...[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5],
  ...[1, 2.5, 5, 10, 30, 60, 300],
];

/** Bucket bounds of the number of writes in one commit. */
export const batchBuckets: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128];
