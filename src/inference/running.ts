import { UnorderedBag } from "../base/unordered_bag.ts";
import { ApiError, errorFields } from "../base/errors.ts";
import {
  answerLifetimeMs,
  holdLifetimeMs,
  holdRenewAfterMs,
  runningTickMs,
} from "../base/limits.ts";
import { isObject, type Json } from "../base/json.ts";
import { type Amount, toAmount } from "../base/money.ts";
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

/** The calls in progress in this process, and what the others have told of theirs. */
export interface RunningCalls {
  /** Renews a call's hold until the returned function is called. */
  add(call: RunningCall): () => void;
  /** The longest-running calls of a project in all processes, at most `limit`, and how many. */
  ofProject(projectId: string, limit: number): Promise<{ shown: RunningCallView[]; count: number }>;
  /** What the processes tell each other of their calls. */
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

/** A call in another process, as that has told it. */
interface ToldCall {
  projectId: string;
  view: RunningCallView;
}

/** The subject on which processes tell each other of their calls. */
export const runningCallsPart = "calls";

/** Returns the calls that a process has told of, except those it cannot understand. */
function readToldCalls(told: Json): ToldCall[] {
  return isObject(told) && Array.isArray(told.calls) ? told.calls.flatMap(readToldCall) : [];
}

/** What a process has told of its calls, without those of one user; null where it told of none. */
export function withoutCallsOf(
  told: Json,
  { projectId, user }: Pick<AccountRef, "projectId" | "user">,
): Json | null {
  if (!isObject(told) || !Array.isArray(told.calls)) return null;
  const isTheirs = (call: Json) => Array.isArray(call) && call[0] === projectId && call[2] === user;
  if (!told.calls.some(isTheirs)) return null;
  return { ...told, calls: told.calls.filter((call) => !isTheirs(call)) };
}

/** A call that was told; none where it is not understood. */
function readToldCall(told: Json): ToldCall[] {
  if (!Array.isArray(told)) return [];
  const [projectId, id, user, model, startedAt, input, output, cost] = told;
  if (typeof cost !== "string" || !/^\d+$/.test(cost)) return [];
  const texts = [projectId, id, user, model].map(String);
  const [ofProject = "", ofCall = "", ofUser = "", ofModel = ""] = texts;
  const used = {
    input: Number(input),
    output: Number(output),
    cost: toAmount(BigInt(cost)),
  };
  const view = { id: ofCall, user: ofUser, model: ofModel, startedAt: Number(startedAt), used };
  return [{ projectId: ofProject, view }];
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
  /** What it had used when the other processes were last told. */
  told: { at: number; used: UsedSoFar } | null;
}

/** The most calls, and the projects, that one process tells of. */
const toldMax = 50;
const projectsToldMax = 300;
/** How long what was told of a call is told again: counting what a response uses takes time. */
const toldForMs = 2_000;

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
  let elsewhere: { calls: ToldCall[]; counts: Map<string, number> } = {
    calls: [],
    counts: new Map(),
  };
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

  async function toldOf(entry: Entry): Promise<Json> {
    const now = clock.elapsed();
    if (!entry.told || now - entry.told.at >= toldForMs) {
      entry.told = { at: now, used: await entry.call.used() };
    }
    const { call: { id, model, ref: { projectId, user } }, startedAt, told: { used } } = entry;
    return [projectId, id, user, model, startedAt.at, used.input, used.output, String(used.cost)];
  }

  const part: FleetPart = {
    async say() {
      if (entries.size === 0) return null;
      const all = [...entries];
      const counts = new Map<string, number>();
      for (const { call: { ref: { projectId } } } of all) {
        counts.set(projectId, (counts.get(projectId) ?? 0) + 1);
      }
      const calls = await Promise.all(all.sort(byAge).slice(0, toldMax).map(toldOf));
      return { calls, counts: Object.fromEntries([...counts].slice(0, projectsToldMax)) };
    },
    hear(others) {
      const calls: ToldCall[] = [];
      const counts = new Map<string, number>();
      for (const told of others.values()) {
        if (!isObject(told)) continue;
        calls.push(...readToldCalls(told));
        for (const [projectId, count] of numbersOf(told.counts ?? null)) {
          counts.set(projectId, (counts.get(projectId) ?? 0) + count);
        }
      }
      elsewhere = { calls, counts };
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
        told: null,
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
      const shown = await Promise.all(own.slice(0, limit).map(viewOf));
      const others = elsewhere.calls.filter((call) => call.projectId === projectId);
      shown.push(...others.map(({ view }) => view));
      shown.sort((one, other) => one.startedAt - other.startedAt);
      const count = own.length + (elsewhere.counts.get(projectId) ?? 0);
      return { shown: shown.slice(0, limit), count };
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
