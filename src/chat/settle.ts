import { ApiError } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import type { Draft } from "../ledger/draft.ts";
import type { Settled, Settlement } from "../ledger/hold.ts";
import { tallyFailure } from "../summaries/tally.ts";
import { type Answer, type ChatRooms, costOf, failure } from "./answer.ts";
import { byUser, endedEvent, type Ending } from "./events.ts";
import { describePrice } from "./pricing.ts";
import { removeMark } from "./replay.ts";
import { inputOf, type TokenUsage } from "./usage.ts";

const settleAttemptsMax = 4;
const settleRetryMs = 100;

/**
 * Charges the answer, durably, before its caller sees its end. Throws 503 when its hold is gone, or
 * when the store stays away.
 */
export async function settle(
  rooms: ChatRooms,
  answer: Answer,
  { usage, ending, alongside }: {
    usage: TokenUsage;
    ending: Ending;
    alongside?: Settlement["alongside"];
  },
): Promise<Extract<Settled, { kind: "settled" }>> {
  const { steps, id, requestId, meter: { doubtful } } = answer;
  steps.begin("settle");
  if (doubtful) {
    rooms.deps.log("warn", "usage_doubtful", { requestId, chat: id, ...countsOf(doubtful) });
  }
  const settlement: Settlement = {
    ref: answer.ref,
    id: answer.id,
    cost: costOf(answer, usage),
    usage: describeUsage(answer, usage),
    idempotencyKey: answer.replay?.idempotencyKey ?? null,
    trigger: byUser(answer.user),
    alongside(draft, entry) {
      draft.emit(endedEvent(answer, ending));
      alongside?.(draft, entry);
    },
  };
  try {
    const settled = await charge(rooms, settlement);
    countFailure(rooms.deps, answer, ending);
    answer.place.count(inputOf(usage) + usage.output);
    steps.end(ending);
    return settled;
  } catch (error) {
    steps.end(failure(error));
    throw error;
  }
}

async function charge({ holds, deps }: ChatRooms, settlement: Settlement) {
  for (let attempt = 1;; attempt++) {
    try {
      const settled = await holds.settle({ ...settlement, again: attempt > 1 });
      if (settled.kind === "settled") return settled;
      break;
    } catch (error) {
      if (attempt === settleAttemptsMax) throw error;
      await deps.clock.sleep(settleRetryMs * attempt);
    }
  }
  throw new ApiError(503, {
    message: "The answer took longer than its hold on the balance could be kept.",
    type: "service_unavailable_error",
    code: "hold_lost",
  });
}

/** What a server reported, as far as it is counts. */
function countsOf({ prompt_tokens, completion_tokens }: JsonObject) {
  const count = (value: unknown) => (typeof value === "number" ? value : null);
  return { promptTokens: count(prompt_tokens), completionTokens: count(completion_tokens) };
}

function describeUsage({ chat, terms, requestId }: Answer, usage: TokenUsage) {
  return {
    model: chat.model,
    requestId,
    source: usage.source,
    uncachedInputTokens: usage.uncachedInput,
    cachedInputTokens: usage.cachedInput,
    cacheWriteTokens: usage.cacheWrite,
    outputTokens: usage.output,
    reasoningTokens: usage.reasoning,
    price: describePrice(terms.price, inputOf(usage)),
  };
}

/** Ends an answer that produced nothing: no charge, and its idempotency key is free again. */
export async function release(
  { holds, deps }: ChatRooms,
  answer: Answer,
  ending: Ending,
): Promise<void> {
  const { ref, id, requestId, replay, steps } = answer;
  steps.begin("settle");
  countFailure(deps, answer, ending);
  const end = (draft: Draft) => {
    draft.emit(endedEvent(answer, ending));
    if (replay) removeMark(draft, replay);
  };
  await holds.release(ref, id, end).catch((error) =>
    // The hold then ends by itself, when it expires.
    deps.log("error", "release_failed", { requestId, chat: id, error: String(error) })
  );
  steps.end(ending);
}

function countFailure({ committer, clock }: Deps, { caller }: Answer, ending: Ending): void {
  if (ending.kind !== "failed") return;
  const { id } = caller.snapshot.project;
  committer.count(tallyFailure(id, ending.errorCode, clock.now()));
}
