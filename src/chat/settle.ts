import { ApiError, loggedFault } from "../base/errors.ts";
import type { JsonObject } from "../base/json.ts";
import { holdLifetimeMs } from "../base/limits.ts";
import { formatAmount } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import type { Draft } from "../ledger/draft.ts";
import type { Settled, Settlement } from "../ledger/hold.ts";
import { tallyFailure } from "../summaries/tally.ts";
import { type Answer, type ChatRooms, costOf, failure } from "./answer.ts";
import { byUser, endedEvent, type Ending } from "./events.ts";
import { describePrice } from "./pricing.ts";
import { removeMark } from "./replay.ts";
import { inputOf, type TokenUsage } from "./usage.ts";

const firstRetryMs = 100;
const retryMsMax = 2_000;
/** How long what a repetition hardly mends is tried. */
const refusedForMs = 500;

/**
 * Charges the answer, durably, before its caller sees its end; a store that is away is waited for as
 * long as the hold may live. Throws 503 when the hold is gone, or the store stays away for longer:
 * then the log has what was not charged.
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
    const { cost, usage: { source, price: _, ...used } } = settlement;
    const lost = { ...used, source, cost: formatAmount(cost), ...loggedFault(error) };
    rooms.deps.log("error", "charge_lost", { chat: id, ...lost });
    throw error;
  }
}

async function charge({ holds, deps: { clock } }: ChatRooms, settlement: Settlement) {
  const startedAt = clock.elapsed();
  for (let attempt = 0;; attempt++) {
    try {
      const settled = await holds.settle({ ...settlement, again: attempt > 0 });
      if (settled.kind === "settled") return settled;
      break;
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status < 500;
      const patienceMs = isRefused ? refusedForMs : holdLifetimeMs;
      if (clock.elapsed() - startedAt >= patienceMs) throw error;
      await clock.sleep(Math.min(retryMsMax, firstRetryMs * 2 ** attempt));
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
    deps.log("error", "release_failed", { requestId, chat: id, ...loggedFault(error) })
  );
  steps.end(ending);
}

function countFailure({ committer, clock }: Deps, { caller }: Answer, ending: Ending): void {
  if (ending.kind !== "failed") return;
  const { id } = caller.snapshot.project;
  committer.count(tallyFailure(id, ending.errorCode, clock.now()));
}
