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

const watchMs = 50;
/** V8's own limit of the heap ends its growth before the memory of a larger machine is used. */
const watchedBytesMax = 8 * 1024 ** 3;
/** Below this share of the memory, V8 decides alone when it collects. */
const shareMin = 0.45;
/** By how much of the memory the process may grow between two collections. */
const shareGrown = 0.1;

/**
 * Collects garbage before it fills the memory of the process. V8 plans by the size of the heap
 * alone, so the strings of large bodies, long unused, would end a process in a small container.
 * It does nothing without the V8 flag `--expose-gc`, or where the memory is large or unknown.
 */
export function watchMemory(memoryBytes: number | null): void {
  const collect = (globalThis as { gc?: () => void }).gc;
  if (!collect || memoryBytes === null || memoryBytes > watchedBytesMax) return;
  let collectAt = memoryBytes * shareMin;
  const watch = () => {
    const { rss } = Deno.memoryUsage();
    if (rss < collectAt) return;
    collect();
    const left = Deno.memoryUsage().rss + memoryBytes * shareGrown;
    collectAt = Math.max(memoryBytes * shareMin, left);
  };
  Deno.unrefTimer(setInterval(watch, watchMs));
}
