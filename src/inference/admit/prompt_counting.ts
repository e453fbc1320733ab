import type { Clock } from "../../base/clock.ts";
import { RateTable } from "../../base/rate_table.ts";
import type { Caller } from "../../projects/auth.ts";
import type { EndUserRef } from "./rate_limiter.ts";
import { TimeSlice } from "../../base/time_slice.ts";
import { loadTokenizer } from "../../pricing/tokenizer.ts";
import { keyText } from "../../store/batch.ts";
import type { InferenceCall } from "../call.ts";
import { countPrompt, leastTokens, type PromptMedia } from "./prompt_size.ts";
import { callerDisconnectedEarly } from "../caller_left.ts";

/** Counts prompts to place holds, one at a time for each user: counting takes CPU time. */
export type CountingQueue = <T>(user: EndUserRef, count: () => Promise<T>) => Promise<T>;

/** Creates an empty queue. */
export function createCountingQueue(): CountingQueue {
  const last = new Map<string, Promise<unknown>>();
  return async (user, count) => {
    const name = keyText([user.projectId, user.user]);
    const before = last.get(name) ?? Promise.resolve();
    const counting = before.then(count, count);
    const ended = counting.then(() => {}, () => {});
    last.set(name, ended);
    try {
      return await counting;
    } finally {
      if (last.get(name) === ended) last.delete(name);
    }
  };
}

/**
 * Tokens that are counted a minute for one user and, of refused calls, for one key and one project.
 */
const countedPerMinute = { user: 500_000, key: 1_000_000, project: 2_000_000 };
/** Characters whose search for words, or for media, takes as long as counting one token. */
const charsPerToken = 500;

/** How much may be counted for each user, so that prompts that are refused cost little. */
export interface CountingBudget {
  /** Tokens that may be counted now. */
  remaining(user: EndUserRef): number;
  take(user: EndUserRef, tokens: number): void;
}

/** Creates what bounds the counting of tokens in one process. */
export function createCounting(clock: Pick<Clock, "elapsed">) {
  return {
    countOneByOne: createCountingQueue(),
    countingBudget: createCountingBudget(clock),
    unpaidCounting: createUnpaidCounting(clock),
  };
}

/** Keeps the budgets in memory: each process counts for itself. */
export function createCountingBudget({ elapsed }: Pick<Clock, "elapsed">): CountingBudget {
  const users = new CountingLimit(countedPerMinute.user, elapsed);
  const nameOf = ({ projectId, user }: EndUserRef) => keyText([projectId, user]);
  return {
    remaining: (user) => users.remaining(nameOf(user)),
    take: (user, tokens) => users.take(nameOf(user), tokens),
  };
}

/**
 * How many tokens may be counted for calls that then get no hold, for each key and project: callers
 * choose the names of users, and each new one has a budget.
 */
export interface UnpaidCounting {
  isUsedUp(caller: Caller): boolean;
  take(caller: Caller, tokens: number): void;
  /** Gives tokens back that were taken, because a hold was placed after all. */
  giveBack(caller: Caller, tokens: number): void;
}

/** Keeps the counts of unpaid tokens in memory, like the budgets of users. */
function createUnpaidCounting({ elapsed }: Pick<Clock, "elapsed">): UnpaidCounting {
  const keys = new CountingLimit(countedPerMinute.key, elapsed);
  const projects = new CountingLimit(countedPerMinute.project, elapsed);
  function take({ key, snapshot: { project } }: Caller, tokens: number): void {
    keys.take(key.id, tokens);
    projects.take(project.id, tokens);
  }
  return {
    isUsedUp: ({ key, snapshot: { project } }) =>
      keys.remaining(key.id) === 0 || projects.remaining(project.id) === 0,
    take,
    giveBack: (caller, tokens) => take(caller, -tokens),
  };
}

/** So many tokens a minute for each name. */
class CountingLimit {
  readonly #limit: number;
  readonly #taken: RateTable;

  constructor(limit: number, now: () => number) {
    this.#limit = limit;
    this.#taken = new RateTable(now);
  }

  remaining(name: string): number {
    return this.#taken.state(name, this.#limit).remaining;
  }

  /** Takes tokens from a name's budget. A negative count gives tokens back. */
  take(name: string, count: number): void {
    if (count !== 0) this.#taken.take(name, { count, limit: this.#limit });
  }
}

/** A counted prompt. */
interface CountedPrompt {
  /** The prompt's tokens; null when the budget of its user, key or project does not suffice. */
  tokens: number | null;
  /** The tokens that the counting took from these budgets. */
  work: number;
}

/** The tokens that reading media of so many characters takes from a budget. */
export function mediaWork({ chars }: Pick<PromptMedia, "chars">): number {
  return Math.ceil(chars / charsPerToken);
}

/** The services that counting needs. */
export interface CountingServices {
  deps: { clock: Clock };
  countOneByOne: CountingQueue;
  countingBudget: CountingBudget;
  unpaidCounting: UnpaidCounting;
}

/**
 * Counts the prompt of a call, up to `most` tokens. A cheap lower bound comes first. Throws when
 * the caller has left.
 */
export async function countForHold(
  { deps: { clock }, countOneByOne, countingBudget, unpaidCounting }: CountingServices,
  { format, input, user: name, request, caller }: Pick<
    InferenceCall,
    "format" | "input" | "user" | "request" | "caller"
  >,
  { media: { added = 0, ...known }, most }: { media: PromptMedia; most: number },
): Promise<CountedPrompt> {
  const media = { ...known, tokens: known.tokens + added };
  const user = { projectId: caller.snapshot.project.id, user: name };
  return await countOneByOne(user, async () => {
    const counted: CountedPrompt = { tokens: null, work: 0 };
    let taken = 0;
    const takeWork = () => {
      unpaidCounting.take(caller, counted.work - taken);
      taken = counted.work;
    };
    const onYield = () => {
      if (request.signal.aborted) throw callerDisconnectedEarly;
      takeWork();
      if (unpaidCounting.isUsedUp(caller)) throw usedUp;
    };
    const slice = new TimeSlice(clock);
    try {
      onYield();
      const allowed = countingBudget.remaining(user);
      if (allowed === 0) return counted;
      const texts = format.promptTexts(input);
      const least = await leastTokens(texts, { slice, most: most - media.tokens, onYield });
      counted.work += least.chars / charsPerToken;
      if (least.tokens + media.tokens > most) {
        return { ...counted, tokens: least.tokens + media.tokens };
      }
      if (least.tokens > allowed - counted.work) return counted;
      const counter = await loadTokenizer();
      const count = (text: string) => {
        const tokens = counter(text);
        counted.work += tokens;
        return tokens;
      };
      const stopAt = Math.min(most, media.tokens + allowed - counted.work);
      const options = { media, count, slice, most: stopAt, onYield };
      const tokens = await countPrompt(format, input, options);
      if (tokens <= stopAt || stopAt === most) counted.tokens = tokens;
      return counted;
    } catch (error) {
      if (error === usedUp) return counted;
      throw error;
    } finally {
      takeWork();
      countingBudget.take(user, counted.work);
    }
  });
}

/** The error that ends the counting for a key or a project whose budget is used up. */
const usedUp = new Error("too many tokens were counted");
