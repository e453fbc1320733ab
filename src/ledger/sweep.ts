import type { Deps } from "../deps.ts";
import type { Key } from "../store/kv.ts";
import type { AccountQueue } from "./account_queue.ts";
import { listHolding } from "./store.ts";

const accountsPerTick = 200;

/**
 * Reaches the accounts that nobody touches any more: ends holds that a dead process left, and
 * forgets accounts that hold nothing. Each call does a bounded part and goes on where it stopped.
 */
export function createHoldSweep(
  { kv, log }: Pick<Deps, "kv" | "log">,
  queue: AccountQueue,
): () => Promise<void> {
  let after: Key | null = null;
  return async () => {
    const { refs, next } = await listHolding(kv, after, accountsPerTick);
    after = next;
    for (const ref of refs) {
      // The draft ends what has expired before this looks at it.
      const work = queue.run(ref, {
        reads: [],
        bytes: 256,
        apply(draft) {
          if (draft.ownHolds.length === 0) draft.unlist();
          return { value: undefined };
        },
      });
      await work.catch((error) => log("error", "sweep_failed", { error: String(error) }));
    }
  };
}
