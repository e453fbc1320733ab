import { ApiError, errorFields, internalError } from "../../base/errors.ts";
import { holdLifetimeMs } from "../../base/limits.ts";
import { formatAmount } from "../../base/money.ts";
import { tokenCounts } from "../../base/token_classes.ts";
import type { AccountTx } from "../../ledger/account_tx.ts";
import { absoluteAmount, type Entry } from "../../ledger/entry.ts";
import type { Settlement, SettleResult } from "../../ledger/hold.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import { budgetsOfKey } from "../../projects/key_budget.ts";
import { noteOutcome } from "../ask/note_outcome.ts";
import type { AdmittedCall } from "../call.ts";
import { removeIdempotencyMark, storeResponse } from "../receive/idempotency.ts";
import { keepInCache } from "../receive/response_cache.ts";
import type { InferenceServices } from "../services.ts";
import { logFault, withoutFault } from "./call_fault.ts";
import { countCharged, countReleased } from "./count_call.ts";
import { type Charged, endedBy, type Ending, failedEnding, toldAs } from "./ending.ts";
import { callEndedEvents, type CallEnding, userTrigger } from "./events.ts";
import { isCharged, noteUnread } from "./is_charged.ts";
import { keepResponse } from "./keep_response.ts";
import { billedOrHeld } from "./record_usage.ts";
import type { CallBill } from "../meter/bill.ts";

/** The services that finishing a call needs. */
export type FinishServices = Pick<
  InferenceServices,
  "deps" | "holds" | "prices" | "reasoningModels" | "targetHealth" | "texts" | "keptQuota"
>;

const firstRetryMs = 100;
const retryMsMax = 2_000;
/** How long a refused write is retried, in ms. Repeating it rarely helps. */
const refusedForMs = 500;

/**
 * Ends an admitted call: charges it or releases its hold, durably, together with its events and all
 * that is kept of it. The only place that does. Returns what was charged; null where nothing was,
 * and where the store has been asked to end the call before.
 *
 * Throws 503 where the hold is gone or the store stays unavailable for as long as the hold can
 * live; the log then has what was not charged. A fault of ours in what comes with the charge is
 * logged, and does not prevent it.
 */
export async function finishCall(
  services: FinishServices,
  call: AdmittedCall,
  ending: Ending,
): Promise<Charged | null> {
  const { error } = ending;
  if (endedBy(error) === "our_fault") stopOnFault(services, call, error);
  if (call.isEnding) return null;
  call.isEnding = true;
  // A stream that was read to its end after its client had left is no failure.
  const failure = ending.isWhole && endedBy(error) === "caller" ? null : error;
  withoutFault(services, call, () => {
    if (failure !== null) call.telemetry.countError(failure);
    if (call.isRouted) noteOutcome(services, call, failure);
  });
  if (!isCharged(call, ending)) {
    await release(services, call, ending);
    return null;
  }
  noteUnread(call, ending);
  const counting = usageOf(services, call, ending);
  const usage = counting instanceof Promise ? await counting : counting;
  const charge = prepareCharge(services, call, { ending, usage });
  const entry = await settle(services, charge.settlement).catch((error) => {
    tellLost(services, call, { error, settlement: charge.settlement });
    throw error;
  });
  tellCharged(services, call, { ...charge, usage, entry });
  return { entry, usage };
}

/** Logs a fault of ours that ends a call, and stops its upstream: nobody reads its body further. */
function stopOnFault(services: FinishServices, call: AdmittedCall, fault: unknown): void {
  logFault(services, call, fault);
  call.attempt.controller.abort(internalError(fault));
}

/** A charge that is not written yet. */
interface PreparedCharge {
  settlement: Settlement;
  told: CallEnding;
  bill: CallBill | null;
  /** Bytes of the call's conversation that are stored with the charge. */
  kept: { bytes: number };
}

function prepareCharge(
  services: FinishServices,
  call: AdmittedCall,
  { ending, usage }: { ending: Ending; usage: TokenUsage },
): PreparedCharge {
  const { telemetry, id, idempotency } = call;
  const told = toldAs(ending.error);
  const safely = (step: () => void) => withoutFault(services, call, step);
  safely(() => {
    telemetry.begin("settle");
    noteReports(services, call);
  });
  const { bill, ...billed } = billedOrHeld(services, call, usage);
  const kept = { bytes: 0 };
  const settlement: Settlement = {
    ref: call.ref,
    id,
    ...billed,
    idempotencyKey: idempotency?.idempotencyKey ?? null,
    trigger: userTrigger(call.user),
    actor: { type: "key", id: call.caller.key.id },
    budgets: budgetsOfKey(services.deps.kv, call.ref.projectId, call.caller.key),
    alongside(tx, entry) {
      safely(() => tx.emit(...callEndedEvents(call, told)));
      safely(() => {
        keepInCache(services, tx, { call, usage, response: ending.cacheable });
        kept.bytes = keepResponse(services, tx, { call, kept: ending.kept, usage });
      });
      safely(() => answerKey(services, tx, { call, ending, charged: { entry, usage } }));
    },
  };
  return { settlement, told, bill, kept };
}

function tellCharged(
  services: FinishServices,
  call: AdmittedCall,
  { told, bill, kept, usage, entry }: PreparedCharge & Charged,
): void {
  const { telemetry } = call;
  withoutFault(services, call, () => countCharged(services, call, { usage, bill }));
  withoutFault(services, call, () => {
    services.keptQuota.added(call.ref, kept.bytes);
    const upstreamCost = entry.usage?.upstreamCost ?? null;
    telemetry.use = { ...attemptsMade(call), usage, cost: absoluteAmount(entry), upstreamCost };
    telemetry.end(told);
  });
}

/** Logs the charge that could not be written. */
function tellLost(
  services: FinishServices,
  call: AdmittedCall,
  { error, settlement }: { error: unknown; settlement: Settlement },
): void {
  withoutFault(services, call, () => call.telemetry.end(failedEnding(error)));
  const { cost, usage: { source, price: _, ...used } } = settlement;
  const lost = { ...used, source, cost: formatAmount(cost), ...errorFields(error) };
  services.deps.log("error", "charge_lost", { chat: call.id, ...lost });
}

/** Ends a call that produced nothing: no charge, and its idempotency key is free again. */
async function release(
  services: FinishServices,
  call: AdmittedCall,
  { error }: Ending,
): Promise<void> {
  const { holds, deps } = services;
  const { ref, id, requestId, idempotency, telemetry } = call;
  const told = toldAs(error);
  telemetry.begin("settle");
  await countReleased(services, call);
  const end = (tx: AccountTx) => {
    tx.emit(...callEndedEvents(call, told));
    if (idempotency) removeIdempotencyMark(tx, idempotency);
  };
  telemetry.use = { ...attemptsMade(call), usage: null, cost: "0", upstreamCost: null };
  await holds.release(ref, id, end).catch((error) =>
    // The hold then expires by itself.
    deps.log("error", "release_failed", { requestId, chat: id, ...errorFields(error) })
  );
  telemetry.end(told);
}

/** The usage of a response; where a fault of ours prevents counting it, all that was held. */
function usageOf(
  services: FinishServices,
  call: AdmittedCall,
  { isWhole }: Ending,
): TokenUsage | Promise<TokenUsage> {
  const { prompt, attempt: { meter, target: { input, quote } } } = call;
  const afterFault = (error: unknown): TokenUsage => {
    logFault(services, call, error);
    const counts = { uncachedInput: prompt.bound, output: quote.cap * input.choices };
    return { ...tokenCounts(counts), source: "estimated" };
  };
  try {
    const usage = isWhole ? meter.usage() : meter.usageSoFar();
    return usage instanceof Promise ? usage.catch(afterFault) : usage;
  } catch (error) {
    return afterFault(error);
  }
}

/** Stores the response under the call's idempotency key, or frees the key. */
function answerKey(
  services: FinishServices,
  tx: AccountTx,
  { call: { idempotency: mark, ref }, ending, charged }: {
    call: AdmittedCall;
    ending: Ending;
    charged: Charged;
  },
): void {
  if (!mark) return;
  const response = ending.stored?.(charged);
  if (response) storeResponse(services, tx, { mark, ref, response });
  else removeIdempotencyMark(tx, mark);
}

/** Notes what a response reports: reasoning tokens, and usage that is not as expected. */
function noteReports({ reasoningModels, deps }: FinishServices, call: AdmittedCall): void {
  const { id: chat, requestId, attempt: { target, meter: { doubtful, reasoning } } } = call;
  const { upstream: { name, url }, model, input: { asksReasoning } } = target;
  // A model that was asked to reason may not do so by itself.
  if (reasoning !== null && !asksReasoning) {
    const { id: projectId } = call.caller.snapshot.project;
    reasoningModels.note({ projectId, name, url }, model, reasoning);
  }
  if (!doubtful) return;
  const { prompt_tokens, completion_tokens } = doubtful;
  const count = (value: unknown) => (typeof value === "number" ? value : null);
  const reported = {
    promptTokens: count(prompt_tokens),
    completionTokens: count(completion_tokens),
  };
  deps.log("warn", "usage_doubtful", { requestId, chat, ...reported });
}

/** The attempts of an admitted call, for the log of requests. */
function attemptsMade(
  { isRouted, attempt: { target, firstTokenMs }, failed, cache }: AdmittedCall,
) {
  const upstream = isRouted ? target.upstream.name : null;
  return { firstTokenMs, upstream, attempts: failed.length + 1, isHit: Boolean(cache?.hit) };
}

/** Writes the charge. While the store is unavailable, retries for as long as the hold can live. */
function settle(services: FinishServices, settlement: Settlement): Promise<Entry> {
  const startedAt = services.deps.clock.elapsed();
  return services.holds.settle(settlement).then(
    entryOf,
    (error) => settleAgain(services, settlement, { startedAt, error }),
  );
}

async function settleAgain(
  { holds, deps: { clock } }: FinishServices,
  settlement: Settlement,
  { startedAt, error: first }: { startedAt: number; error: unknown },
): Promise<Entry> {
  let error = first;
  for (let attempt = 0;; attempt++) {
    const isRefused = error instanceof ApiError && error.status < 500;
    const retryForMs = isRefused ? refusedForMs : holdLifetimeMs;
    if (clock.elapsed() - startedAt >= retryForMs) throw error;
    await clock.sleep(Math.min(retryMsMax, firstRetryMs * 2 ** attempt));
    try {
      return entryOf(await holds.settle({ ...settlement, isRetry: true }));
    } catch (again) {
      if (again === holdLost) throw again;
      error = again;
    }
  }
}

const holdLost = new ApiError(503, {
  message: "The response took longer than its hold on the balance could be kept.",
  type: "service_unavailable_error",
  code: "hold_lost",
});

/** Throws 503 where the hold is gone. */
function entryOf(settled: SettleResult): Entry {
  if (settled.kind === "settled") return settled.entry;
  throw holdLost;
}
