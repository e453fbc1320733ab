import type { EndUserRef } from "./rate_limiter.ts";
import { TimeSlice } from "../base/time_slice.ts";
import { loadTokenizer } from "../pricing/tokenizer.ts";
import { keyText } from "../store/batch.ts";
import type { InferenceCall, InferenceDeps } from "./call.ts";
import { callerDisconnectedEarly } from "./disconnect.ts";
import type { Format, ModelRequest } from "./format.ts";
import { countPrompt, type PromptMedia } from "./prompt_size.ts";

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
 * Counts the prompt of a call, up to `most` tokens. A cheap lower bound comes first. Throws when
 * the caller has left.
 */
export async function countForHold(
  services: InferenceDeps,
  call: InferenceCall,
  { media, most }: { media: PromptMedia; most: number },
): Promise<number> {
  const { format, input, user, request, caller: { snapshot: { project } } } = call;
  const atLeast = Math.floor(wordsIn(format, input) / wordsPerToken) + media.tokens;
  if (atLeast > most) return atLeast;
  return await services.countOneByOne({ projectId: project.id, user }, async () => {
    const count = await loadTokenizer();
    const slice = new TimeSlice(services.deps.clock);
    const requireCaller = () => {
      if (request.signal.aborted) throw callerDisconnectedEarly;
    };
    requireCaller();
    return await countPrompt(format, input, { media, count, slice, most, onYield: requireCaller });
  });
}

/** Words that one token may join: `//`, a line's end and `//` are one. */
const wordsPerToken = 2;

/** Words of a prompt, separated by blanks. */
function wordsIn(format: Format, request: ModelRequest): number {
  let words = 0;
  for (const text of format.promptTexts(request)) {
    let isInWord = false;
    for (let at = 0; at < text.length; at++) {
      const isSpace = text.charCodeAt(at) <= 32;
      if (!isSpace && !isInWord) words++;
      isInWord = !isSpace;
    }
  }
  return words;
}
