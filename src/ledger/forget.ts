import { loggedFault } from "../base/errors.ts";
import { toBase62 } from "../base/ids.ts";
import type { Deps } from "../deps.ts";
import { type AuditActor, auditRow } from "../projects/audit.ts";
import type { Eraser } from "../store/erase.ts";
import { eventsPrefix, forgetJobKey } from "../store/keys.ts";
import { emptyWrite, type Key } from "../store/kv.ts";
import { ScanBudget } from "../store/scan.ts";
import type { AccountQueue } from "./account_queue.ts";
import { createEntryEraser } from "./erase_entries.ts";
import {
  createForfeit,
  createReopening,
  encodeForgetJob,
  type ForgetJob,
  listForgetJobs,
  moveAccount,
  readForgetJob,
} from "./forget_account.ts";

/** How far the forgetting of a user has come. */
export interface ForgetProgress {
  /** `waiting`: for something that is under way, as a delivery that is tried again. */
  status: "done" | "running" | "waiting";
  pseudonym: string;
  /** Records that named the user so far, by what they are. */
  erased: Record<string, number>;
}

/** Takes a user out of everything that is stored. */
export interface Forget {
  /**
   * Begins, or goes on, with a bounded part. Throws 400 while anything is under way that needs the
   * user, or money is left that is not to be forfeited. Once begun it goes on by the sweep.
   */
  run(
    asked: { projectId: string; user: string; forfeit: boolean },
    by: AuditActor,
  ): Promise<ForgetProgress>;
  /** Goes on with all that were begun; a bounded part at each call. */
  sweep(): Promise<void>;
}

interface ForgetDeps {
  queue: AccountQueue;
  /** Of the other rooms: those at work while nothing can be booked, and those after it. */
  erasers: { closed: readonly Eraser[]; open: readonly Eraser[] };
}

const readsPerCall = 2_000;
const callMs = 500;
const jobsPerSweep = 20;

/**
 * The forgetting of users. The account moves to a random name in one write; all else is done by
 * erasers, one after the other, whose pages can be repeated: so a crash anywhere costs a page.
 */
export function createForget(deps: Deps, { queue, erasers }: ForgetDeps): Forget {
  const { kv, committer, clock, randomBytes, log } = deps;
  const reopening = createReopening({ deps, queue });
  const steps = [
    createForfeit({ deps, queue }),
    createEntryEraser(deps),
    ...erasers.closed,
    reopening,
    ...erasers.open,
  ];
  const reopeningAt = steps.indexOf(reopening);
  let after: Key | null = null;

  /** Behind every event there is, also where some process's clock is, or was, ahead of ours. */
  async function cutOf(projectId: string): Promise<string> {
    const next = deps.id("evt");
    const [newest] = await kv.list({ prefix: eventsPrefix(projectId), reverse: true, limit: 1 });
    const last = String(newest?.key[2] ?? "");
    return last < next ? next : `${last}~`;
  }

  async function begin(asked: Parameters<Forget["run"]>[0], by: AuditActor): Promise<ForgetJob> {
    const job: ForgetJob = {
      ...asked,
      pseudonym: `forgotten_${toBase62(randomBytes(16))}`,
      until: await cutOf(asked.projectId),
      step: steps[0]?.name ?? "",
      place: null,
      erased: {},
    };
    for (const { refusal } of steps) {
      const refused = await refusal?.(job);
      if (refused) throw refused;
    }
    const { projectId, pseudonym: target, forfeit } = job;
    const deed = { by, action: "user.forgotten", target, detail: { forfeit } };
    await moveAccount({ deps, queue }, job, auditRow(deps, projectId, deed));
    // Whoever else began it meanwhile has chosen the name.
    return (await readForgetJob(kv, job.projectId, job.user))?.job ?? job;
  }

  /** One page, and the job's place after it; null once nothing is left to do. */
  async function advance(job: ForgetJob, version: string | null, budget: ScanBudget) {
    const at = Math.max(0, steps.findIndex(({ name }) => name === job.step));
    const step = steps[at];
    if (!step) return null;
    const { erased, next, waiting = false } = await step.page(job, job.place, budget);
    const ended = next === null && !waiting;
    const following = ended ? steps[at + 1] : step;
    const counted = (job.erased[step.name] ?? 0) + erased;
    const moved: ForgetJob = {
      ...job,
      step: following?.name ?? step.name,
      place: next,
      erased: { ...job.erased, ...(counted > 0 ? { [step.name]: counted } : {}) },
      // Whoever comes by that name after the reopening is someone new.
      until: at < reopeningAt ? await cutOf(job.projectId) : job.until,
    };
    const key = forgetJobKey(job.projectId, job.user);
    const write = { ...emptyWrite(), checks: [{ key, version }] };
    await committer.commit(
      following
        ? { ...write, sets: [{ key, value: encodeForgetJob(moved) }] }
        : { ...write, deletes: [key] },
    );
    return { job: moved, waiting };
  }

  /** As far as one call goes. */
  async function goOn(begun: ForgetJob): Promise<ForgetProgress> {
    const deadline = clock.elapsed() + callMs;
    const budget = new ScanBudget(readsPerCall, () => clock.elapsed() >= deadline);
    let last = begun;
    do {
      const found = await readForgetJob(kv, begun.projectId, begun.user);
      // Ended, here or by another process.
      if (!found) return { status: "done", pseudonym: last.pseudonym, erased: last.erased };
      const moved = await advance(found.job, found.version, budget);
      last = moved?.job ?? found.job;
      if (moved?.waiting) {
        return { status: "waiting", pseudonym: last.pseudonym, erased: last.erased };
      }
    } while (!budget.isUsedUp);
    return { status: "running", pseudonym: last.pseudonym, erased: last.erased };
  }

  return {
    async run(asked, by) {
      const known = await readForgetJob(kv, asked.projectId, asked.user);
      return await goOn(known?.job ?? await begin(asked, by));
    },
    async sweep() {
      const { jobs, next } = await listForgetJobs(kv, after, jobsPerSweep);
      after = next;
      for (const job of jobs) {
        await goOn(job).catch((error) => log("error", "forgetting_failed", loggedFault(error)));
      }
    },
  };
}
