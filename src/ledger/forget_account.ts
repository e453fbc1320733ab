import { ApiError, badRequest } from "../base/errors.ts";
import { formatAmount } from "../base/money.ts";
import { fromBytes, type Json, toBytes } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { Trigger } from "../events/event.ts";
import { attemptsToWrite } from "../store/backoff.ts";
import type { Eraser, Erasure } from "../store/erase.ts";
import {
  accountKey,
  authorizationKey,
  forgetJobKey,
  forgetJobsPrefix,
  movedKey,
  verifiedKey,
} from "../store/keys.ts";
import { emptyWrite, type Key, type Kv, type Row, type Write } from "../store/kv.ts";
import { decodeAccount, emptyAccount, encodeAccount } from "./account.ts";
import { accountContended, type AccountQueue } from "./account_queue.ts";
import { decodeAuthorization } from "./authorization.ts";
import type { AccountTx } from "./account_tx.ts";
import { endHolds } from "./hold_sweep.ts";
import { listAfter } from "../store/scan.ts";

interface Services {
  deps: Pick<Deps, "kv" | "committer" | "clock" | "randomBytes">;
  queue: AccountQueue;
}

/**
 * Moves a user's account, if there is one, to their pseudonym, and creates the job that does the
 * rest: from here on the erasure only goes forward. A closed account stays under the old name and
 * refuses everything until the entries are renamed, so that the two cannot mix. In the shared mode
 * too, where it prevents new grants for the user. `row` is written along, for the audit trail.
 * Throws 400 while money is held, while a balance is left that must not be forfeited, or while a
 * person's grant is active.
 */
export async function moveAccount(
  { deps, queue }: Services,
  job: ForgetJob,
  row: Write["sets"][number],
): Promise<void> {
  const { projectId, user } = job;
  const authorization = authorizationKey(projectId, user);
  const keys = [accountKey(projectId, user), forgetJobKey(projectId, user), authorization] as const;
  for await (const _ of attemptsToWrite(deps)) {
    const [account, known, grant] = await deps.kv.getMany(keys);
    if (known?.value) return;
    requireNoGrant(grant?.value);
    if (account?.value) {
      await endHolds(queue, { projectId, user }).catch(ignoreClosed);
      return await queue.run({ projectId, user }, {
        reads: [],
        // The maximum, so that it shares its write with no other operation.
        estimatedBytes: Infinity,
        apply: (tx) => ({ value: applyMove(tx, job, row) }),
      }).catch(ignoreClosed);
    }
    const write = {
      ...emptyWrite(),
      checks: [
        ...keys.slice(0, 2).map((key) => ({ key, version: null })),
        { key: authorization, version: grant?.version ?? null },
      ],
      sets: [
        { key: keys[0], value: encodeAccount({ ...emptyAccount(), closed: true }) },
        { key: keys[1], value: encodeForgetJob(job) },
        row,
      ],
    };
    if ((await deps.committer.commit(write)) !== null) return;
  }
  throw accountContended();
}

/** Ignores the error of a closed account: another call has started the erasure at the same time. */
function ignoreClosed(error: unknown): undefined {
  if (error instanceof ApiError && error.code === "user_being_forgotten") return undefined;
  throw error;
}

/** Throws 400 `user_connected` while a person's grant for this user is active. */
function requireNoGrant(authorization: Row["value"] | undefined): void {
  if (!authorization || decodeAuthorization(authorization).status !== "active") return;
  const message =
    "A person still allows this user to spend from their wallet. Disconnect the user first.";
  throw badRequest(null, message, "user_connected");
}

function applyMove(tx: AccountTx, job: ForgetJob, row: Write["sets"][number]): void {
  const { projectId, user, pseudonym } = job;
  const jobKey = forgetJobKey(projectId, user);
  const { account } = tx;
  if (account.holds.length > 0) {
    throw badRequest(null, "Money is held for calls that are still running.", "money_held");
  }
  if (account.balance !== 0n && !job.forfeit) {
    const { currency } = tx.snapshot.project;
    throw badRequest(
      "forfeit",
      `The balance is ${formatAmount(account.balance)} ${currency}. ` +
        'Pay it out first, or send {"forfeit": true}.',
      "balance_not_zero",
    );
  }
  if (account.listed) tx.dropFromSweep();
  const moved = encodeAccount({ ...account, formerly: user });
  tx.put(accountKey(projectId, pseudonym), moved);
  tx.put(movedKey(projectId), toBytes(pseudonym));
  tx.remove(verifiedKey(projectId, user));
  tx.put(jobKey, encodeForgetJob(job));
  tx.put(row.key, row.value);
  Object.assign(account, emptyAccount(), { closed: true });
}

/** The cause of a forfeit in jobs of 0.9.0, which only the operator could start. */
const byOperator: Trigger = { source: "api", actorType: "paywall-owner", actorId: "operator" };

/** Takes what is left of the balance as a charge by the owner, under the pseudonym. */
export function createForfeit({ deps, queue }: Services): Eraser {
  return {
    name: "forfeited",
    async page({ projectId, user, pseudonym }) {
      const { value } = await deps.kv.get(accountKey(projectId, pseudonym));
      if (decodeAccount(value).balance === 0n) return { erased: 0, next: null };
      const trigger = (await readForgetJob(deps.kv, projectId, user))?.job.trigger ?? byOperator;
      const erased = await queue.run({ projectId, user: pseudonym }, {
        reads: [],
        estimatedBytes: 2048,
        apply(tx) {
          const { balance } = tx.account;
          if (balance === 0n) return { value: 0 };
          const kind = { kind: "charge", reason: "forfeit" } as const;
          const entry = { ...kind, metadata: { reason: "forfeited" } };
          tx.debit(balance, entry, { trigger }, { unlimited: balance });
          return { value: 1 };
        },
      });
      return { erased, next: null };
    },
  };
}

/**
 * Creates the last step of an erasure: the account under the old name is free again, for someone
 * new.
 */
export function createReopening({ deps: { kv, committer } }: Services): Eraser {
  return {
    name: "accounts",
    async page({ projectId, user, pseudonym }) {
      const keys = [accountKey(projectId, pseudonym), accountKey(projectId, user)] as const;
      const [moved, left] = await kv.getMany(keys);
      const write = emptyWrite();
      if (left?.value && decodeAccount(left.value).closed) {
        write.checks.push({ key: keys[1], version: left.version });
        write.deletes.push(keys[1]);
      }
      const account = moved?.value ? decodeAccount(moved.value) : emptyAccount();
      if (account.formerly !== null) {
        write.checks.push({ key: keys[0], version: moved?.version ?? null });
        write.sets.push({ key: keys[0], value: encodeAccount({ ...account, formerly: null }) });
      }
      if (write.checks.length === 0) return { erased: 0, next: null };
      const landed = await committer.commit(write);
      if (landed === null) return { erased: 0, next: null, waiting: true };
      return { erased: write.sets.length, next: null };
    },
  };
}

/** An erasure in progress: what is being erased, and how far it has come. */
export interface ForgetJob extends Erasure {
  /** Whether the remaining balance is forfeited. */
  forfeit: boolean;
  /** Who erases the user; absent in jobs of 0.9.0. */
  trigger?: Trigger;
  /** The current eraser and its position. */
  step: string;
  place: Json | null;
  /** Erased records so far, by kind. */
  erased: Record<string, number>;
}

/** Encodes a job's row. */
export function encodeForgetJob(job: ForgetJob): Uint8Array {
  return toBytes(job);
}

/** Reads the job and the version to check when it is written again, or null. */
export async function readForgetJob(
  kv: Kv,
  projectId: string,
  user: string,
): Promise<{ job: ForgetJob; version: string | null } | null> {
  const { value, version } = await kv.get(forgetJobKey(projectId, user));
  return value && { job: fromBytes<ForgetJob>(value), version };
}

/**
 * Lists a page of the erasures in progress, after `after`, and where the next page starts; null at
 * the end.
 */
export async function listForgetJobs(
  kv: Kv,
  after: Key | null,
  limit: number,
): Promise<{ jobs: ForgetJob[]; next: Key | null }> {
  const rows = await listAfter(kv, forgetJobsPrefix, { after, limit });
  const jobs = rows.flatMap(({ value }) => (value ? [fromBytes<ForgetJob>(value)] : []));
  return { jobs, next: rows.length < limit ? null : rows.at(-1)?.key ?? null };
}
