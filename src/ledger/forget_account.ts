import { ApiError, badRequest } from "../base/errors.ts";
import { formatAmount } from "../base/money.ts";
import { toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { Trigger } from "../events/event.ts";
import type { Eraser } from "../store/erase.ts";
import { accountKey, forgetJobKey, movedKey } from "../store/keys.ts";
import { emptyWrite, type Write } from "../store/kv.ts";
import { decodeAccount, emptyAccount, encodeAccount } from "./account.ts";
import type { AccountQueue } from "./account_queue.ts";
import type { Draft } from "./draft.ts";
import { encodeForgetJob, type ForgetJob } from "./forget_job.ts";

interface Rooms {
  deps: Pick<Deps, "kv" | "committer">;
  queue: AccountQueue;
}

const attemptsMax = 8;

/**
 * Moves a user's account to their pseudonym, together with the job that does the rest: from here on
 * it goes forward only. Under the old name stays a closed account, which refuses everything until
 * the entries are renamed, so that nothing of the two can get mixed up. `row` is the audit trail's,
 * written along. Throws 400 while money is
 * held, or is left and not to be forfeited.
 */
export async function moveAccount(
  { deps, queue }: Rooms,
  job: ForgetJob,
  row: Write["sets"][number],
): Promise<void> {
  const { projectId, user } = job;
  const keys = [accountKey(projectId, user), forgetJobKey(projectId, user)] as const;
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const [account, known] = await deps.kv.getMany(keys);
    if (known?.value) return;
    if (account?.value) {
      return await queue.run({ projectId, user }, {
        reads: [],
        // As much as any write may carry: it shares its own with no other operation.
        bytes: Infinity,
        apply: (draft) => ({ value: applyMove(draft, job, row) }),
      }).catch(ignoreClosed);
    }
    const write = {
      ...emptyWrite(),
      checks: keys.map((key) => ({ key, version: null })),
      sets: [{ key: forgetJobKey(projectId, user), value: encodeForgetJob(job) }, row],
    };
    if ((await deps.committer.commit(write)) !== null) return;
  }
  throw new ApiError(503, { message: "The user's account kept changing. Try again." });
}

/** Another call has begun it meanwhile. */
function ignoreClosed(error: unknown): void {
  if (error instanceof ApiError && error.code === "user_being_forgotten") return;
  throw error;
}

function applyMove(draft: Draft, job: ForgetJob, row: Write["sets"][number]): void {
  const { projectId, user, pseudonym } = job;
  const jobKey = forgetJobKey(projectId, user);
  const { account } = draft;
  if (account.holds.length > 0) {
    throw badRequest(null, "Money is held for answers that are still running.", "money_held");
  }
  if (account.balance !== 0n && !job.forfeit) {
    const { currency } = draft.snapshot.project;
    throw badRequest(
      "forfeit",
      `The balance is ${formatAmount(account.balance)} ${currency}: ` +
        'pay it out first, or say {"forfeit": true}.',
      "balance_not_zero",
    );
  }
  if (account.listed) draft.unlist();
  const moved = encodeAccount({ ...account, formerly: user });
  draft.put(accountKey(projectId, pseudonym), moved);
  draft.put(movedKey(projectId), toBytes(pseudonym));
  draft.put(jobKey, encodeForgetJob(job));
  draft.put(row.key, row.value);
  Object.assign(account, emptyAccount(), { closed: true });
}

const byOperator: Trigger = { source: "api", actorType: "paywall-owner", actorId: "operator" };

/** Takes what is left as a charge of the owner's, in the pseudonym's name. */
export function createForfeit({ deps, queue }: Rooms): Eraser {
  return {
    name: "forfeited",
    async page({ projectId, pseudonym }) {
      const { value } = await deps.kv.get(accountKey(projectId, pseudonym));
      if (decodeAccount(value).balance === 0n) return { erased: 0, next: null };
      const erased = await queue.run({ projectId, user: pseudonym }, {
        reads: [],
        bytes: 2048,
        apply(draft) {
          const { balance } = draft.account;
          if (balance === 0n) return { value: 0 };
          const entry = { kind: "charge" as const, metadata: { reason: "forfeited" } };
          draft.debit(balance, entry, { trigger: byOperator });
          return { value: 1 };
        },
      });
      return { erased, next: null };
    },
  };
}

/** Ends the move: the old name is free again, and for someone new. */
export function createReopening({ deps: { kv, committer } }: Rooms): Eraser {
  return {
    name: "accounts",
    async page({ projectId, user, pseudonym }) {
      const keys = [accountKey(projectId, pseudonym), accountKey(projectId, user)] as const;
      const [moved, left] = await kv.getMany(keys);
      if (!moved?.value || decodeAccount(moved.value).formerly === null) {
        return { erased: 0, next: null };
      }
      const write = emptyWrite();
      const account = { ...decodeAccount(moved.value), formerly: null };
      write.checks.push({ key: keys[0], version: moved.version });
      write.sets.push({ key: keys[0], value: encodeAccount(account) });
      write.checks.push({ key: keys[1], version: left?.version ?? null });
      write.deletes.push(keys[1]);
      const landed = await committer.commit(write);
      return landed === null ? { erased: 0, next: null, waiting: true } : { erased: 1, next: null };
    },
  };
}
