import { errorFields } from "../base/errors.ts";
import { timeOfId } from "../base/ids.ts";
import type { Deps } from "../deps.ts";
import type { Key, Kv } from "../store/kv.ts";
import type { AccountRef } from "./account.ts";
import type { AccountQueue } from "./account_queue.ts";
import { holdIndexKey, listHoldIndex, readAccount } from "./store.ts";

/** Ends the holds of accounts that no request touches any more. */
export interface HoldSweep {
  /**
   * Removes holds that a dead process left behind, and drops idle accounts without holds from the
   * index. Each call does a bounded part and continues where the last one stopped.
   */
  sweep(): Promise<void>;
  /** Begins a new round with the next sweep. */
  startOver(): void;
  /** Forgets the last round: another process sweeps now. */
  rest(): void;
  /** How many holds the last complete round left in place, and the age of the oldest. */
  lastRound(): { open: number; oldestMs: number };
}

const accountsPerPage = 200;
/** How long one call may run before it leaves the next page to the next call. */
const sweepMs = 2_000;
/** The most writes for one account: each ends some of at most 256 holds. */
const writesMax = 16;
/** How long after its last entry an account counts as in use, and stays in the index. */
const idleMs = 60_000;

/** Creates the sweep over the accounts in the hold index. */
export function createHoldSweep(
  { kv, log, clock }: Pick<Deps, "kv" | "log" | "clock">,
  queue: AccountQueue,
): HoldSweep {
  let after: Key | null = null;
  let seen = { open: 0, oldestMs: 0 };
  let round = { open: 0, oldestMs: 0 };

  /**
   * Whether an account without holds was used of late. Such an account stays in the index: to write
   * it would make the process that uses it read it again, and it would soon be listed again.
   */
  async function isInUse(ref: AccountRef): Promise<boolean> {
    const { holds, last } = await readAccount(kv, ref);
    return holds.length === 0 && last !== null &&
      Math.abs(clock.now() - timeOfId(last)) < idleMs;
  }

  async function visit(ref: AccountRef): Promise<void> {
    if (await isInUse(ref)) return;
    const holds = await endHolds(queue, ref);
    round.open += holds.length;
    for (const id of holds) {
      round.oldestMs = Math.max(round.oldestMs, clock.now() - timeOfId(id));
    }
  }

  async function page(): Promise<void> {
    const { refs, next } = await listHoldIndex(kv, after, accountsPerPage);
    after = next;
    // All at once: their writes go together, and a crash leaves very many.
    await Promise.all(
      refs.map((ref) =>
        visit(ref).catch((error) =>
          log("error", "sweep_failed", { project: ref.projectId, ...errorFields(error) })
        )
      ),
    );
  }

  function startOver(): void {
    after = null;
    round = { open: 0, oldestMs: 0 };
  }

  return {
    lastRound: () => seen,
    startOver,
    rest() {
      startOver();
      seen = round;
    },
    async sweep() {
      const until = clock.elapsed() + sweepMs;
      do await page(); while (after !== null && clock.elapsed() < until);
      if (after !== null) return;
      seen = round;
      round = { open: 0, oldestMs: 0 };
    },
  };
}

/**
 * Removes a user's holds that have ended, charging their use, and returns the ids of the others.
 * Where there are none, the account is no longer in the index.
 */
export async function endHolds(queue: AccountQueue, ref: AccountRef): Promise<string[]> {
  let looked = await look(queue, ref);
  for (let n = 0; looked.isMore && n < writesMax; n++) looked = await look(queue, ref);
  return looked.holds;
}

/**
 * Returns an account's holds, after the transaction has removed those that have ended. An account
 * that is no longer in the index is not touched: its user may have been erased, and nothing may be
 * written under that name.
 */
function look(queue: AccountQueue, ref: AccountRef): Promise<{ holds: string[]; isMore: boolean }> {
  const listed = holdIndexKey(ref);
  return queue.run(ref, {
    reads: [listed],
    estimatedBytes: 256,
    existingHoldOnly: true,
    apply(tx) {
      if (tx.row(listed) && tx.ownHolds.length === 0) tx.dropFromSweep();
      const holds = tx.ownHolds.map(({ id }) => id);
      return { value: { holds, isMore: tx.hasEndedHolds } };
    },
  });
}

/**
 * Whether any account holds money for a user: their own, or a wallet. The accounts decide, since
 * the index still lists one for some time after its last hold. Holds that have ended are removed,
 * so that nothing is charged under the user's name any more.
 */
export async function holdsMoney(
  { kv, queue }: { kv: Kv; queue: AccountQueue },
  { projectId, user }: Pick<AccountRef, "projectId" | "user">,
): Promise<boolean> {
  for (let after: Key | null = null;;) {
    const { refs, next } = await listHoldIndex(kv, after, accountsPerPage);
    for (const ref of refs) {
      if (ref.projectId !== projectId || ref.user !== user) continue;
      if ((await endHolds(queue, ref)).length > 0) return true;
    }
    if (!next) return false;
    after = next;
  }
}
