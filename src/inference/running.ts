import { UnorderedBag } from "../base/unordered_bag.ts";
import { ApiError, errorFields } from "../base/errors.ts";
import {
  answerLifetimeMs,
  holdLifetimeMs,
  holdRenewAfterMs,
  runningTickMs,
} from "../base/limits.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import type { Amount } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import type { FleetPart } from "../fleet/fleet.ts";
import { numbersOf } from "../fleet/shared_takes.ts";
import type { AccountRef } from "../ledger/account.ts";
import type { Holds } from "../ledger/hold.ts";

/** What a call has used, in tokens and in money. */
interface UsedSoFar {
  input: number;
  output: number;
  cost: Amount;
}

/** A call in progress: it holds money, and must end. */
export interface RunningCall {
  ref: AccountRef;
  id: string;
  /** The id on its response and in the log. */
  requestId: string;
  model: string;
  /** What it has used so far, which is charged if this process dies. */
  used(): Promise<UsedSoFar>;
  /** Aborts it; the reason is the error that the caller gets. */
  cut(reason: ApiError): void;
}

/** A call in progress, as its project's owner sees it. */
export interface RunningCallView {
  id: string;
  user: string;
  model: string;
  /** In milliseconds since 1970. */
  startedAt: number;
  used: UsedSoFar;
}

/** The calls in progress in this process, and how many there are in the others. */
export interface RunningCalls {
  /** Renews a call's hold until the returned function is called. */
  add(call: RunningCall): () => void;
  /** The calls of a project; at most `limit` are shown. */
  ofProject(projectId: string, limit: number): Promise<RunningOfProject>;
  /** What the processes tell each other: how many calls they have, and never whose. */
  part: FleetPart;
  /** Aborts all of this process. */
  cutAll(reason: ApiError): void;
  /** Counts a stream whose handler returns, until the returned function is called. */
  addStream(): () => void;
  /** Streams whose handler has returned. */
  readonly streams: number;
  /** Resolves when no call is left. */
  idle(): Promise<void>;
  readonly size: number;
}

/** The calls in progress of one project. */
export interface RunningOfProject {
  /** The longest-running ones of this process. */
  shown: RunningCallView[];
  /** How many there are in this process, and in the others. */
  here: number;
  elsewhere: number;
  /** How many there are of each model, in all processes. */
  models: [model: string, count: number][];
}

/** The subject on which processes tell each other of their calls. */
export const runningCallsPart = "calls";

/** Counts by project, and by project and model. */
class CallCounts {
  readonly #projects = new Map<string, number>();
  readonly #models = new Map<string, Map<string, number>>();

  addProject(projectId: string, count: number): void {
    this.#projects.set(projectId, this.ofProject(projectId) + count);
  }

  addModel(projectId: string, model: string, count: number): void {
    const models = this.#models.get(projectId) ?? new Map<string, number>();
    this.#models.set(projectId, models.set(model, (models.get(model) ?? 0) + count));
  }

  ofProject(projectId: string): number {
    return this.#projects.get(projectId) ?? 0;
  }

  ofModels(projectId: string): Iterable<[string, number]> {
    return this.#models.get(projectId) ?? [];
  }

  /** As much of it as the other processes are told. */
  told(): Json {
    const models: Record<string, JsonObject> = {};
    let left = modelsToldMax;
    for (const [projectId, counts] of this.#models) {
      if (left <= 0) break;
      models[projectId] = Object.fromEntries([...counts].slice(0, left));
      left -= counts.size;
    }
    return {
      counts: Object.fromEntries([...this.#projects].slice(0, projectsToldMax)),
      models,
    };
  }

  /** Adds what a process has told, as far as it is understood. */
  hear(told: Json): void {
    if (!isObject(told)) return;
    const { counts = null, models } = told;
    for (const [projectId, count] of numbersOf(counts)) this.addProject(projectId, count);
    for (const [projectId, ofProject] of Object.entries(isObject(models) ? models : {})) {
      for (const [model, count] of numbersOf(ofProject)) this.addModel(projectId, model, count);
    }
  }
}

/** A time by the wall clock, by which holds expire, and by the monotonic clock. */
interface Moment {
  at: number;
  elapsed: number;
}

interface Entry {
  call: RunningCall;
  startedAt: Moment;
  renewedAt: Moment;
  renewing: boolean;
  ended: boolean;
}

/** The most projects, and models of all of them, that one process tells of. */
const projectsToldMax = 300;
const modelsToldMax = 50;

/**
 * Renews the holds of long calls, all by one timer; short calls cost no write. A call whose renewal
 * is not committed is aborted well before its hold expires.
 */
export function createRunningCalls(
  { clock, log }: Pick<Deps, "clock" | "log">,
  holds: Holds,
): RunningCalls {
  const entries = new UnorderedBag<Entry>();
  let idle: (() => void)[] = [];
  let ticking = false;
  let streams = 0;
  let elsewhere = new CallCounts();
  const moment = (): Moment => ({ at: clock.now(), elapsed: clock.elapsed() });
  /** Returns the time since then, by whichever clock reports more. */
  const since = ({ at, elapsed }: Moment) => Math.max(clock.now() - at, clock.elapsed() - elapsed);

  function tick(): void {
    for (const entry of entries) {
      const age = since(entry.renewedAt);
      const lastedMs = clock.elapsed() - entry.startedAt.elapsed;
      if (lastedMs > answerLifetimeMs) entry.call.cut(abortError("answer_too_long"));
      else if (age > holdLifetimeMs - 2 * runningTickMs) {
        entry.call.cut(abortError("hold_not_renewed"));
      } else if (age >= holdRenewAfterMs && !entry.renewing) renew(entry);
    }
    ticking = entries.size > 0;
    if (ticking) clock.after(runningTickMs, tick);
  }

  async function renew(entry: Entry): Promise<void> {
    const { call } = entry;
    const begunAt = moment();
    entry.renewing = true;
    try {
      const renewed = await holds.renew(call.ref, call.id, (await call.used()).cost);
      if (renewed) entry.renewedAt = begunAt;
      else if (!entry.ended) call.cut(abortError("hold_lost"));
    } catch (error) {
      const { requestId, id: chat } = call;
      log("warn", "renewal_failed", { requestId, chat, ...errorFields(error) });
    } finally {
      entry.renewing = false;
    }
  }

  const byAge = (one: Entry, other: Entry) => one.startedAt.elapsed - other.startedAt.elapsed;

  async function viewOf({ call, startedAt }: Entry): Promise<RunningCallView> {
    const { id, ref: { user }, model } = call;
    return { id, user, model, startedAt: startedAt.at, used: await call.used() };
  }

  const part: FleetPart = {
    say() {
      if (entries.size === 0) return null;
      const here = new CallCounts();
      for (const { call: { ref: { projectId }, model } } of entries) {
        here.addProject(projectId, 1);
        here.addModel(projectId, model, 1);
      }
      return here.told();
    },
    hear(others) {
      elsewhere = new CallCounts();
      for (const told of others.values()) elsewhere.hear(told);
    },
  };

  return {
    part,
    add(call) {
      const now = moment();
      const entry: Entry = {
        call,
        startedAt: now,
        renewedAt: now,
        renewing: false,
        ended: false,
      };
      const takeOut = entries.add(entry);
      if (!ticking) clock.after(runningTickMs, tick);
      ticking = true;
      return () => {
        entry.ended = true;
        takeOut();
        if (entries.size > 0) return;
        idle.forEach((resolve) => resolve());
        idle = [];
      };
    },
    async ofProject(projectId, limit) {
      const own = [...entries].filter(({ call }) => call.ref.projectId === projectId)
        .sort(byAge);
      const models = new Map(elsewhere.ofModels(projectId));
      for (const { call: { model } } of own) models.set(model, (models.get(model) ?? 0) + 1);
      return {
        shown: await Promise.all(own.slice(0, limit).map(viewOf)),
        here: own.length,
        elsewhere: elsewhere.ofProject(projectId),
        models: [...models].sort(([, one], [, other]) => other - one),
      };
    },
    cutAll(reason) {
      for (const { call } of entries) call.cut(reason);
    },
    idle: () =>
      entries.size === 0 ? Promise.resolve() : new Promise((resolve) => idle.push(resolve)),
    addStream() {
      streams++;
      return () => void streams--;
    },
    get streams() {
      return streams;
    },
    get size() {
      return entries.size;
    },
  };
}

const abortReasons = {
  answer_too_long: "it took longer than a response may take",
  hold_not_renewed: "its hold on the balance could not be kept",
  hold_lost: "its hold on the balance was lost",
};

function abortError(code: keyof typeof abortReasons): ApiError {
  return new ApiError(503, {
    message: `The response was ended: ${abortReasons[code]}.`,
    type: "service_unavailable_error",
    code,
  });
}
