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
