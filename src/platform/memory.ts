import { totalmem } from "node:os";
import process from "node:process";

/**
 * The memory that this process may use, in bytes: that of its machine, or the limit of its own
 * cgroup where that is smaller. Null without the permission `--allow-sys=systemMemoryInfo`.
 */
export function memoryOfProcess(): number | null {
  try {
    // Without a limit: 0, or a number that no machine has.
    const limit = process.constrainedMemory();
    const machine = totalmem();
    return limit > 0 ? Math.min(limit, machine) : machine;
  } catch {
    return null;
  }
}

/** On a larger machine, V8's own limit of the heap comes first. */
const watchedBytesMax = 8 * 1024 ** 3;
/** Below this share of the memory, V8 decides alone when it collects. */
const shareMin = 0.45;
/** By how much of the memory the process may grow between two collections. */
const shareGrown = 0.1;

/**
 * Returns a function to be called often, which collects garbage before it fills the memory of the
 * process. V8 plans by the size of the heap alone: strings of large bodies, long unused, would end
 * a process in a small container. The function does nothing without the V8 flag `--expose-gc`, or
 * where the memory is large or unknown.
 */
export function createMemoryWatch(memoryBytes: number | null): () => void {
  const collect: unknown = Reflect.get(globalThis, "gc");
  const isWatched = memoryBytes !== null && memoryBytes <= watchedBytesMax;
  if (typeof collect !== "function" || !isWatched) return () => {};
  const firstAt = memoryBytes * shareMin;
  let collectAt = firstAt;
  return () => {
    if (Deno.memoryUsage().rss < collectAt) return;
    collect();
    collectAt = Math.max(firstAt, Deno.memoryUsage().rss + memoryBytes * shareGrown);
  };
}
