import type { Clock } from "../base/clock.ts";
import { afterTaking, rateState } from "../base/rate.ts";
import type { EndUserRef } from "./rate_limiter.ts";
import { TimeSlice } from "../base/time_slice.ts";
import { loadTokenizer } from "../pricing/tokenizer.ts";
import { keyText } from "../store/batch.ts";
import type { InferenceCall, InferenceDeps } from "./call.ts";
import { callerDisconnectedEarly } from "./disconnect.ts";
import { countPrompt, leastTokens, type PromptMedia } from "./prompt_size.ts";

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

/** Tokens that are counted for one user a minute. */
const countedPerMinute = 500_000;
/** Searching so many characters for words takes as long as counting one token. */
const charsPerToken = 500;
/** With more users, those are forgotten who counted nothing for a minute. */
const usersMax = 10_000;
const forgetEveryMs = 1_000;

/** How much may be counted for each user, so that refused prompts cost little. */
export interface CountingBudget {
  /** Tokens that may be counted now. */
  remaining(user: EndUserRef): number;
  take(user: EndUserRef, tokens: number): void;
}

/** Keeps the budgets in memory: each process counts for itself. */
export function createCountingBudget({ elapsed: now }: Pick<Clock, "elapsed">): CountingBudget {
  const usedUp = new Map<string, number>();
  let mayForgetAt = 0;
  const nameOf = ({ projectId, user }: EndUserRef) => keyText([projectId, user]);

  function makeRoom(): void {
    if (now() >= mayForgetAt) {
      // With very many busy users, not repeated for each new one.
      mayForgetAt = now() + forgetEveryMs;
      for (const [name, at] of usedUp) if (at <= now()) usedUp.delete(name);
    }
    // All of them are busy: whoever counted first may start anew.
    const [oldest] = usedUp.keys();
    if (usedUp.size >= usersMax && oldest !== undefined) usedUp.delete(oldest);
  }

  return {
    remaining: (user) =>
      rateState(usedUp.get(nameOf(user)) ?? 0, countedPerMinute, now()).remaining,
    take(user, count) {
      if (count <= 0) return;
      const name = nameOf(user);
      const before = usedUp.get(name) ?? 0;
      if (before === 0 && usedUp.size >= usersMax) makeRoom();
      usedUp.set(name, afterTaking(before, { count, limit: countedPerMinute, now: now() }));
    },
  };
}

/**
 * Counts the prompt of a call, up to `most` tokens. A cheap lower bound comes first. Null when the
 * user's budget does not suffice. Throws when the caller has left.
 */
export async function countForHold(
  { deps: { clock }, countOneByOne, countingBudget }: InferenceDeps,
  { format, input, user: name, request, caller }: Pick<
    InferenceCall,
    "format" | "input" | "user" | "request" | "caller"
  >,
  { media: { added = 0, ...known }, most }: { media: PromptMedia; most: number },
): Promise<number | null> {
  const media = { ...known, tokens: known.tokens + added };
  const user = { projectId: caller.snapshot.project.id, user: name };
  return await countOneByOne(user, async () => {
    const onYield = () => {
      if (request.signal.aborted) throw callerDisconnectedEarly;
    };
    onYield();
    if (countingBudget.remaining(user) === 0) return null;
    const slice = new TimeSlice(clock);
    let spent = 0;
    try {
      const texts = format.promptTexts(input);
      const least = await leastTokens(texts, { slice, most: most - media.tokens, onYield });
      spent += least.chars / charsPerToken;
      if (least.tokens + media.tokens > most) return least.tokens + media.tokens;
      const allowed = countingBudget.remaining(user) - spent;
      if (least.tokens > allowed) return null;
      const counter = await loadTokenizer();
      const count = (text: string) => {
        const tokens = counter(text);
        spent += tokens;
        return tokens;
      };
      const stopAt = Math.min(most, media.tokens + allowed);
      const tokens = await countPrompt(format, input, {
        media,
        count,
        slice,
        most: stopAt,
        onYield,
      });
      return tokens > stopAt && stopAt < most ? null : tokens;
    } finally {
      countingBudget.take(user, Math.ceil(spent));
    }
  });
}
