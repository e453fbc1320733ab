import { loggedFault } from "../base/errors.ts";
import { timeOfId } from "../base/ids.ts";
import type { Deps } from "../deps.ts";
import type { Key } from "../store/kv.ts";
import type { AccountRef } from "./account.ts";
import type { AccountQueue } from "./account_queue.ts";
import { holdIndexKey, listHoldIndex } from "./store.ts";

/** Looks after the accounts that nobody touches any more. */
export interface HoldSweep {
  /**
   * Ends holds that a dead process left, and forgets accounts that hold nothing. Each call does a
   * bounded part and goes on where it stopped.
   */
  sweep(): Promise<void>;
  /** The holds that its last round over all accounts has left. */
  lastRound(): { open: number; oldestMs: number };
}

const accountsPerPage = 200;
/** How long one call goes on to the next page. */
const sweepMs = 2_000;
/** Most writes for one account: each ends some holds, of at most 256. */
const writesMax = 16;

/** The sweep over the accounts that may hold money. */
export function createHoldSweep(
  { kv, log, clock }: Pick<Deps, "kv" | "log" | "clock">,
  queue: AccountQueue,
): HoldSweep {
  let after: Key | null = null;
  let seen = { open: 0, oldestMs: 0 };
  let round = { open: 0, oldestMs: 0 };

  /**
   * What an account holds, once the draft has ended what has expired. One that is no longer listed
   * is left alone: its user may have been forgotten, and nothing may be written by that name.
   */
  function look(ref: AccountRef): Promise<{ holds: string[]; hasExpired: boolean }> {
    const listed = holdIndexKey(ref);
    return queue.run(ref, {
      reads: [listed],
      estimatedBytes: 256,
      existingHoldOnly: true,
      apply(tx) {
        if (tx.row(listed) && tx.ownHolds.length === 0) tx.dropFromSweep();
        const holds = tx.ownHolds.map(({ id }) => id);
        return { value: { holds, hasExpired: tx.hasExpired } };
      },
    });
  }

  async function visit(ref: AccountRef): Promise<void> {
    let looked = await look(ref);
    for (let n = 0; looked.hasExpired && n < writesMax; n++) looked = await look(ref);
    const { holds } = looked;
    round.open += holds.length;
    for (const id of holds) {
      round.oldestMs = Math.max(round.oldestMs, clock.now() - timeOfId(id));
    }
  }

  async function page(): Promise<void> {
    const { refs, next } = await listHoldIndex(kv, after, accountsPerPage);
    after = next;
    for (const ref of refs) {
      await visit(ref).catch((error) =>
        log("error", "sweep_failed", { project: ref.projectId, ...loggedFault(error) })
      );
    }
  }

  return {
    lastRound: () => seen,
    async sweep() {
      const until = clock.elapsed() + sweepMs;
      do await page(); while (after !== null && clock.elapsed() < until);
      if (after !== null) return;
      seen = round;
      round = { open: 0, oldestMs: 0 };
    },
  };
}
