import { errorFields } from "../base/errors.ts";
import { toBase62 } from "../base/ids.ts";
import type { Deps } from "../deps.ts";
import type { Trigger } from "../events/event.ts";
import { type AuditActor, auditRow } from "../projects/audit.ts";
import type { Eraser } from "../store/erase.ts";
import { eventsPrefix, forgetJobKey } from "../store/keys.ts";
import { emptyWrite, type Key } from "../store/kv.ts";
import { ScanBudget } from "../store/scan.ts";
import { pseudonymStart } from "./pseudonym.ts";
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

/** The progress of a user's erasure. */
interface ForgetProgress {
  /**
   * `waiting` lasts until something under way completes, such as a delivery that is being retried.
   */
  status: "done" | "running" | "waiting";
  pseudonym: string;
  /** How many records that named the user have been erased, by kind. */
  erased: Record<string, number>;
}

/** Erases a user from everything that is stored. */
export interface Forget {
  /**
   * Starts or continues an erasure, one bounded part at a time. Throws 400 while something under
   * way needs the user, or while a balance is left that must not be forfeited. Once started, the
   * sweep continues it.
   */
  run(
    request: { projectId: string; user: string; forfeit: boolean },
    by: AuditActor,
  ): Promise<ForgetProgress>;
  /** Continues all erasures that were started; one bounded part at each call. */
  sweep(): Promise<void>;
}

interface ForgetDeps {
  queue: AccountQueue;
  /**
   * Erasers of other modules: those that run while the account is closed, and those that run after.
   */
  erasers: { closed: readonly Eraser[]; open: readonly Eraser[] };
}

const readsPerCall = 2_000;
const callMs = 500;
const jobsPerSweep = 20;

/**
 * Creates the erasure of users. The account moves to a random name in one write; erasers do
 * everything else, one after the other. Their pages can be repeated, so a crash costs one page.
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

  /** An id after every existing event, also where some process's clock is or was ahead of ours. */
  async function cutOf(projectId: string): Promise<string> {
    const next = deps.id("evt");
    const [newest] = await kv.list({ prefix: eventsPrefix(projectId), reverse: true, limit: 1 });
    const last = String(newest?.key[2] ?? "");
    return last < next ? next : `${last}~`;
  }

  async function begin(request: Parameters<Forget["run"]>[0], by: AuditActor): Promise<ForgetJob> {
    const job: ForgetJob = {
      ...request,
      trigger: triggerOf(by),
      pseudonym: `${pseudonymStart}${toBase62(randomBytes(16))}`,
      until: await cutOf(request.projectId),
      step: steps[0]?.name ?? "",
      place: null,
      erased: {},
    };
    for (const { refusal } of steps) {
      const refused = await refusal?.(job);
      if (refused) throw refused;
    }
    const { projectId, pseudonym: target, forfeit } = job;
    const auditAction = { by, action: "user.forgotten" as const, target, detail: { forfeit } };
    await moveAccount({ deps, queue }, job, auditRow(deps, projectId, auditAction));
    // Another call that started it at the same time has chosen the name.
    return (await readForgetJob(kv, job.projectId, job.user))?.job ?? job;
  }

  /** Runs one page and returns the job's new position; null when nothing is left to do. */
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
      // Whoever uses the name after the reopening is someone new.
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

  /** Runs as many pages of an erasure as one call may. */
  async function goOn(begun: ForgetJob): Promise<ForgetProgress> {
    const deadline = clock.elapsed() + callMs;
    const budget = new ScanBudget(readsPerCall, () => clock.elapsed() >= deadline);
    let last = begun;
    do {
      const found = await readForgetJob(kv, begun.projectId, begun.user);
      // Completed, here or by another process.
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
    async run(request, by) {
      const known = await readForgetJob(kv, request.projectId, request.user);
      return await goOn(known?.job ?? await begin(request, by));
    },
    async sweep() {
      const { jobs, next } = await listForgetJobs(kv, after, jobsPerSweep);
      after = next;
      for (const job of jobs) {
        await goOn(job).catch((error) => log("error", "forgetting_failed", errorFields(error)));
      }
    },
  };
}

/** What an erasure's events name as their cause. */
function triggerOf({ actor: { id: actorId }, via }: AuditActor): Trigger {
  return { source: via === "console" ? "console" : "api", actorType: "paywall-owner", actorId };
}
