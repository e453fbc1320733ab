import { withDeadline } from "../base/deadline.ts";
import { ApiError, storeUnavailable, UnknownOutcome } from "../base/errors.ts";
import { storeDeadlineMs } from "../base/limits.ts";
import type { Clock } from "../base/clock.ts";
import { type Batch, keyText, openBatch, type PendingWrite, touchedBy } from "./batch.ts";
import type { CommitMeter } from "./commit_meter.ts";
import { asStoreFault, emptyWrite, type Increment, type Key, type Kv, type Write } from "./kv.ts";
import { type Budgets, createBudgets } from "./budgets.ts";
import { createMarkedWrites, type MarkedOutcome } from "./marked_writes.ts";
import { createPacer } from "./pacer.ts";
import { addTo, createSums } from "./sums.ts";

/** The result of a write: its version, or null when a check failed and nothing was written. */
type CommitResult = string | null;

/** Commits writes, combining those that arrive during a commit. */
export interface Committer {
  /**
   * Writes all of `write` or nothing. Null: a check failed. Throws `ApiError` 503 when the store
   * gives no answer; the write has then either landed or never will.
   */
  commit(write: Write): Promise<CommitResult>;
  /**
   * Adds to a sum without a write of its own: the addition goes with the next write, or with
   * `flush`.
   */
  count(addition: Increment): void;
  /**
   * Adds rows without a write of their own, for rows that no one may wait for: they go with the
   * next write, or with `flush`, all of them together. Rows with an addition are lost where the
   * outcome of a write is unknown, since the addition must not be counted twice.
   */
  carry(rows: readonly CarriedRow[], addition?: Increment): void;
  /** How many calls of `carry` wait to be written. */
  carried(): number;
  /** Writes all that was only counted or carried so far. Throws as `commit` does. */
  flush(): Promise<void>;
  /** Resolves when nothing is pending or under way. */
  idle(): Promise<void>;
  /** The budgets that several writes of a batch may change: see `Write.budgets`. */
  readonly budgets: Pick<Budgets, "load" | "use">;
}

/** A row that goes with the next write. */
interface CarriedRow {
  key: Key;
  value: Uint8Array;
}

/** The rows and the addition of one call of `carry`. */
interface Carried {
  rows: readonly CarriedRow[];
  addition: Increment | undefined;
}

interface CommitterOptions {
  kv: Kv;
  newBatchId: () => string;
  clock: Pick<Clock, "elapsed" | "after">;
  meter: CommitMeter;
}

/** The most counted increments that go with one write, which reserves space for that many rows. */
const ridingMax = 5;
/** The most calls of `carry` whose rows go with one write; each has one or two rows. */
const carriedMax = 4;
/** How often a batch is sent again whose budgets another process has changed. */
const budgetRoundsMax = 3;

/**
 * Sends one atomic write after another, with the sums that they add to. After the time `until`, by
 * the clock's `elapsed`, no more is sent, and nobody waits for the outcome of a write.
 */
type Sender = (write: Write, until: number) => Promise<MarkedOutcome>;

/**
 * Creates the group commit. Writes that arrive while an atomic write is under way go into the next:
 * an idle service adds no delay, and a busy one pays one fsync for many requests. On a local file
 * one is under way at a time: two, for the same 64 callers, are smaller, cost more, and complete no
 * more requests a second. A far store gets several at once, which touch different rows. Each member
 * gets a result of its own: those whose checks failed are told so, and the others are sent again.
 */
export function createCommitter(options: CommitterOptions): Committer {
  const { kv, clock, meter } = options;
  const queue: PendingWrite[] = [];
  const counted = new Map<string, Increment & { values: bigint[] }>();
  const carried: Carried[] = [];
  const budgets = createBudgets(kv);
  /** The rows that writes under way change. */
  const underWay = new Map<string, number>();
  const senders = Array.from({ length: kv.limits.inFlight }, createSender);
  const pacer = createPacer({ inFlight: kv.limits.inFlight, clock, start });

  function start(): Promise<void> | null {
    if (queue.length === 0) return null;
    const batch = openBatch(queue, kv.limits.checks, underWay);
    const sender = batch.members.length > 0 && senders.pop();
    if (!sender) return null;
    const touched = kv.limits.inFlight > 1 ? touchedBy(batch) : [];
    for (const text of touched) underWay.set(text, (underWay.get(text) ?? 0) + 1);
    return commitBatch(batch, sender).finally(() => {
      for (const text of touched) release(text);
      senders.push(sender);
    });
  }

  function release(text: string): void {
    const left = (underWay.get(text) ?? 1) - 1;
    if (left > 0) underWay.set(text, left);
    else underWay.delete(text);
  }

  async function commitBatch(first: Batch, send: Sender): Promise<void> {
    let batch = first;
    const until = clock.elapsed() + storeDeadlineMs;
    for (let round = 1;; round++) {
      meter.commitWrites.observe(batch.members.length);
      const withBudgets = batch.write.budgets
        ? await sendWithBudgets(batch, { send, until })
        : null;
      const outcome = withBudgets?.outcome ?? await send(batch.write, until).catch(asFailure);
      const { members } = batch = withBudgets?.batch ?? batch;
      if (typeof outcome === "string") return members.forEach(({ resolve }) => resolve(outcome));
      if ("error" in outcome) {
        return await afterError(members, { send, until, error: outcome.error });
      }
      const left = members.length === 1 ? refuseAll(members) : refuseFailed(batch, outcome);
      if (left.length === 0) return;
      // As long as it is known whose checks failed, the rest gets smaller each time.
      if (left.length === members.length && !withBudgets?.isStale) {
        return await sendSingly(members, { send, until });
      }
      if (left.length === members.length && round === budgetRoundsMax) {
        return void refuseAll(members);
      }
      meter.retried.add(left.length);
      batch = openBatch([...left], kv.limits.checks);
    }
  }

  /** Sends a batch with its budgets. Members that a budget refuses are told so, and leave it. */
  async function sendWithBudgets(
    whole: Batch,
    { send, until }: Sending,
  ): Promise<{ batch: Batch; outcome: MarkedOutcome | Failure; isStale: boolean }> {
    const folded = await budgets.fold(whole.members).catch(asFailure);
    if ("error" in folded) return { batch: whole, outcome: folded, isStale: false };
    const { allowed, refused } = folded;
    refuseAll(refused);
    const batch = refused.length > 0 ? openBatch([...allowed], kv.limits.checks) : whole;
    if (allowed.length === 0) return { batch, outcome: [], isStale: false };
    const checks = [...batch.write.checks, ...folded.checks];
    const sets = [...batch.write.sets, ...folded.sets];
    const outcome = await send({ ...batch.write, checks, sets }, until).catch(asFailure);
    if (typeof outcome === "string") folded.landed(outcome);
    else folded.abandon();
    const own = batch.write.checks.length;
    const isStale = Array.isArray(outcome) && outcome.some((at) => at >= own);
    return { batch, outcome, isStale };
  }

  async function afterError(
    members: PendingWrite[],
    { error, ...sending }: Sending & { error: unknown },
  ): Promise<void> {
    if (error instanceof ApiError) return rejectAll(members, error);
    // It has not landed, and the store answers again.
    await sendSingly(members, sending);
  }

  /**
   * Rejects all members with one error: a store that does not answer is not called again for each
   * write that waits.
   */
  function rejectAll(members: readonly PendingWrite[], error: ApiError): void {
    for (const { reject } of members) reject(error);
    for (const { reject } of queue.splice(0)) reject(storeUnavailable(notSent));
  }

  async function sendSingly(members: PendingWrite[], sending: Sending): Promise<void> {
    for (const [at, member] of members.entries()) {
      meter.retried.add();
      const alone = openBatch([member], kv.limits.checks);
      const { outcome } = await sendWithBudgets(alone, sending);
      if (typeof outcome === "string") member.resolve(outcome);
      else if (!("error" in outcome)) member.resolve(null);
      else if (outcome.error instanceof ApiError) {
        return rejectAll(members.slice(at), outcome.error);
      } else member.reject(asStoreFault(outcome.error));
    }
  }

  function createSender(): Sender {
    const { newBatchId } = options;
    const sendMarked = createMarkedWrites({ kv, newBatchId, markers: meter.markers });
    const sums = createSums(newBatchId);

    async function sendTimed(write: Write, until: number): Promise<MarkedOutcome> {
      const startedAt = clock.elapsed();
      if (startedAt >= until) throw storeUnavailable(notSent);
      try {
        const outcome = await withDeadline(clock, sendMarked(write), {
          ms: until - startedAt,
          late,
        });
        meter.commits[typeof outcome === "string" ? "landed" : "refused"].add();
        return outcome;
      } catch (error) {
        meter.commits.failed.add();
        throw error;
      } finally {
        meter.commitTime.observeMs(clock.elapsed() - startedAt);
      }
    }

    return async (write, until) => {
      const riding = takeCounted();
      const taken = carried.splice(0, carriedMax);
      const rows = taken.flatMap((each) => each.rows);
      const further = taken.flatMap(({ addition }) => addition ? [addition] : []);
      const additions = [...write.additions ?? [], ...riding, ...further];
      if (additions.length === 0 && rows.length === 0) return await sendTimed(write, until);
      const { sets, committed } = sums.after(additions);
      // To count too little is better than to count twice; a row is the same however often.
      const putBack = (error?: unknown) => {
        const isUnknown = error instanceof UnknownOutcome;
        if (!isUnknown) riding.forEach(count);
        carried.unshift(...taken.filter(({ addition }) => !isUnknown || !addition));
      };
      try {
        const outcome = await sendTimed(
          { ...write, sets: [...write.sets, ...sets, ...rows] },
          until,
        );
        if (typeof outcome === "string") committed();
        else putBack();
        return outcome;
      } catch (error) {
        putBack(error);
        sums.abandon(additions);
        throw error;
      }
    };
  }

  function takeCounted(): Increment[] {
    const taken = [...counted].slice(0, ridingMax);
    for (const [name] of taken) counted.delete(name);
    return taken.map(([, addition]) => addition);
  }

  function count({ key, field, values }: Increment): void {
    const name = `${keyText(key)}\u0000${field}`;
    const before = counted.get(name);
    if (before) addTo(before.values, values);
    else counted.set(name, { key, field, values: [...values] });
  }

  function commit(write: Write): Promise<CommitResult> {
    return new Promise((resolve, reject) => {
      queue.push(write.budgets ? expected(write, resolve, reject) : { write, resolve, reject });
      pacer.wake();
    });
  }

  /**
   * A pending write whose changes of budgets count for later decisions, until its outcome is known.
   */
  function expected(
    write: Write,
    resolve: PendingWrite["resolve"],
    reject: PendingWrite["reject"],
  ): PendingWrite {
    const changes = write.budgets ?? [];
    budgets.expect(changes);
    return {
      write,
      resolve(version) {
        budgets.end(changes);
        resolve(version);
      },
      reject(error) {
        budgets.end(changes);
        reject(error);
      },
    };
  }

  return {
    commit,
    count,
    carry: (rows, addition) => void carried.push({ rows, addition }),
    carried: () => carried.length,
    async flush() {
      while (counted.size > 0 || carried.length > 0) await commit(emptyWrite());
    },
    idle: pacer.idle,
    budgets,
  };
}

interface Sending {
  send: Sender;
  until: number;
}

const notSent = "not sent: the store did not answer what was sent before";
/** The write and its marker go on, and nobody waits for them. */
const late = () => new UnknownOutcome(`no outcome within ${storeDeadlineMs} ms`);

/** The error of a write. */
interface Failure {
  error: unknown;
}

function asFailure(error: unknown): Failure {
  return { error };
}

function refuseAll(members: readonly PendingWrite[]): PendingWrite[] {
  for (const { resolve } of members) resolve(null);
  return [];
}

/** Tells the members whose checks failed; returns the others. */
function refuseFailed({ write, members }: Batch, failed: readonly number[]): PendingWrite[] {
  const keys = new Set(failed.map((at) => keyText(write.checks[at]?.key ?? [])));
  return members.filter((member) => {
    if (!member.write.checks.some(({ key }) => keys.has(keyText(key)))) return true;
    member.resolve(null);
    return false;
  });
}
