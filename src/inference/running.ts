import { UnorderedBag } from "../base/unordered_bag.ts";
import { ApiError, loggedFault } from "../base/errors.ts";
import {
  answerLifetimeMs,
  holdLifetimeMs,
  holdRenewAfterMs,
  runningTickMs,
} from "../base/limits.ts";
import type { Amount } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import type { AccountRef } from "../ledger/account.ts";
import type { Holds } from "../ledger/hold.ts";

/** What an answer has used, in tokens and in money. */
export interface UsedSoFar {
  input: number;
  output: number;
  cost: Amount;
}

/** An answer that is under way: it holds money, and must end. */
export interface RunningCall {
  ref: AccountRef;
  id: string;
  /** On its response, and in the log. */
  requestId: string;
  model: string;
  /** What it has used so far: charged if this process dies. */
  used(): Promise<UsedSoFar>;
  /** Ends it; the reason is what its caller is told. */
  cut(reason: ApiError): void;
}

/** One of the answers under way, as its project's owner sees it. */
export interface RunningCallView {
  id: string;
  user: string;
  model: string;
  /** In milliseconds since 1970. */
  startedAt: number;
  used: UsedSoFar;
}

/** The answers under way in this process. */
export interface RunningCalls {
  /** Looks after an answer until the returned function is called. */
  add(answer: RunningCall): () => void;
  /** A project's that run longest, of so many at the most, and how many there are. */
  ofProject(projectId: string, limit: number): Promise<{ shown: RunningCallView[]; count: number }>;
  /** Ends all of them. */
  cutAll(reason: ApiError): void;
  /** Counts a stream, whose handler is about to return, until the returned function is called. */
  addStream(): () => void;
  /** The streams that go on after their handler's return. */
  readonly streams: number;
  /** Resolves when none is left. */
  idle(): Promise<void>;
  readonly size: number;
}

/** By the clock that holds end by, which may be set, and by the one that nobody sets. */
interface Moment {
  at: number;
  elapsed: number;
}

interface Entry {
  answer: RunningCall;
  startedAt: Moment;
  renewedAt: Moment;
  renewing: boolean;
  ended: boolean;
}

/**
 * Renews the holds of long answers, all by one timer: short ones cost no write for it. An answer
 * whose renewal does not land is cut well before its hold ends.
 */
export function createRunningCalls(
  { clock, log }: Pick<Deps, "clock" | "log">,
  holds: Holds,
): RunningCalls {
  const entries = new UnorderedBag<Entry>();
  let idle: (() => void)[] = [];
  let ticking = false;
  let streams = 0;
  const moment = (): Moment => ({ at: clock.now(), elapsed: clock.elapsed() });
  /** How long ago, by the clock that says more. */
  const since = ({ at, elapsed }: Moment) => Math.max(clock.now() - at, clock.elapsed() - elapsed);

  function tick(): void {
    for (const entry of entries) {
      const age = since(entry.renewedAt);
      const lastedMs = clock.elapsed() - entry.startedAt.elapsed;
      if (lastedMs > answerLifetimeMs) entry.answer.cut(cutError("answer_too_long"));
      else if (age > holdLifetimeMs - 2 * runningTickMs) {
        entry.answer.cut(cutError("hold_not_renewed"));
      } else if (age >= holdRenewAfterMs && !entry.renewing) renew(entry);
    }
    ticking = entries.size > 0;
    if (ticking) clock.after(runningTickMs, tick);
  }

  async function renew(entry: Entry): Promise<void> {
    const { answer } = entry;
    const begunAt = moment();
    entry.renewing = true;
    try {
      const renewed = await holds.renew(answer.ref, answer.id, (await answer.used()).cost);
      if (renewed) entry.renewedAt = begunAt;
      else if (!entry.ended) answer.cut(cutError("hold_lost"));
    } catch (error) {
      const { requestId, id: chat } = answer;
      log("warn", "renewal_failed", { requestId, chat, ...loggedFault(error) });
    } finally {
      entry.renewing = false;
    }
  }

  return {
    add(answer) {
      const now = moment();
      const entry = { answer, startedAt: now, renewedAt: now, renewing: false, ended: false };
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
      const own = [...entries].filter(({ answer }) => answer.ref.projectId === projectId)
        .sort((one, other) => one.startedAt.elapsed - other.startedAt.elapsed);
      const shown = own.slice(0, limit).map(async ({ answer, startedAt }) => {
        const { id, ref: { user }, model } = answer;
        return { id, user, model, startedAt: startedAt.at, used: await answer.used() };
      });
      return { shown: await Promise.all(shown), count: own.length };
    },
    cutAll(reason) {
      for (const { answer } of entries) answer.cut(reason);
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

const cutReasons = {
  answer_too_long: "it took longer than an answer may take",
  hold_not_renewed: "its hold on the balance could not be kept",
  hold_lost: "its hold on the balance was lost",
};

function cutError(code: keyof typeof cutReasons): ApiError {
  return new ApiError(503, {
    message: `The answer was ended: ${cutReasons[code]}.`,
    type: "service_unavailable_error",
    code,
  });
}
