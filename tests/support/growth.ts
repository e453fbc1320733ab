import assert from "node:assert/strict";

/** Pairs of runs that are measured at least, and at most where their times are not conclusive. */
const pairs = { least: 3, most: 9 };

/** How much longer work on four times as much may take: 4 is linear, 16 is quadratic. */
const ratioMax = { none: 3, linear: 10, quadratic: 40 };

/** What takes no longer at four times the size is short anyway: caches and garbage decide there. */
const shortMs = 50;

/**
 * Fails where work of four times the size takes longer than its kind of growth allows. Both sizes
 * run in turn, and the shortest run of each counts, so that other work on the machine slows both
 * down alike. `prepare` makes the work of a size, which is not measured.
 */
export async function assertGrowth(
  prepare: (size: number) => () => unknown,
  { size, growth = "linear", what = "it" }: {
    /** The smaller size: at four times of it, a worse growth must take longer than `shortMs`. */
    size: number;
    growth?: keyof typeof ratioMax;
    what?: string;
  },
): Promise<void> {
  const [small, large] = [prepare(size), prepare(4 * size)];
  let [smallMs, largeMs] = [Infinity, Infinity];
  for (let pair = 1; pair <= pairs.most; pair++) {
    smallMs = Math.min(smallMs, await elapsedMs(small));
    largeMs = Math.min(largeMs, await elapsedMs(large));
    if (pair < pairs.least) continue;
    if (largeMs < shortMs || largeMs < ratioMax[growth] * smallMs) return;
  }
  assert.fail(`${what}: ${smallMs} ms, and ${largeMs} ms for four times as much`);
}

async function elapsedMs(work: () => unknown): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}
