import { ApiError, errorFields } from "../../base/errors.ts";
import type { JsonObject } from "../../base/json.ts";
import { holdLifetimeMs } from "../../base/limits.ts";
import { type Amount, formatAmount, toAmount, zero } from "../../base/money.ts";
import type { Deps } from "../../deps.ts";
import type { AccountTx } from "../../ledger/account_tx.ts";
import { absoluteAmount, type Entry, type EntryUsage } from "../../ledger/entry.ts";
import type { Settlement, SettleResult } from "../../ledger/hold.ts";
import { countAttemptHourly, countFailureHourly } from "../../summaries/hourly_counters.ts";
import {
  type AdmittedCall,
  billOf,
  type CallBill,
  failedEnding,
  type InferenceDeps,
} from "../call.ts";
import { callEndedEvents, type CallEnding, userTrigger } from "./events.ts";
import { budgetsOfKey } from "../../projects/key_budget.ts";
import { recordPrice } from "../../pricing/price_record.ts";
import type { KeptIds } from "../format.ts";
import { keepInCache } from "../receive/response_cache.ts";
import { type KeptResponse, rememberResponse, type RequestTurn } from "../kept/kept_responses.ts";
import { leastTokensNow } from "../admit/prompt_size.ts";
import { removeIdempotencyMark } from "../receive/idempotency.ts";
import { inputTokensOf, outputTokensOf, storeTokens } from "../../base/token_classes.ts";
import type { TokenUsage } from "../../pricing/usage.ts";

const firstRetryMs = 100;
const retryMsMax = 2_000;
/** How long a refused write is retried: repeating it rarely helps. */
const refusedForMs = 500;

/**
 * Charges the call, durably, before the caller gets the end of the response. While the store is
 * unavailable, it retries for as long as the hold can live. Throws 503 when the hold is gone or the
 * store stays unavailable; the log then has what was not charged. A fault of ours in what comes
 * with the charge is logged, and does not prevent it.
 */
export async function settleCall(
  services: InferenceDeps,
  call: AdmittedCall,
  { usage, ending, kept, alongside }: CallSettlement,
): Promise<Extract<SettleResult, { kind: "settled" }>> {
  const { telemetry, id } = call;
  const safely = (step: () => void) => withoutFault(services, call, step);
  safely(() => {
    telemetry.begin("settle");
    noteReports(services, call);
  });
  const { bill, ...billed } = billedOrHeld(services, call, usage);
  let keptBytes = 0;
  const settlement: Settlement = {
    ref: call.ref,
    id,
    ...billed,
    idempotencyKey: call.idempotency?.idempotencyKey ?? null,
    trigger: userTrigger(call.user),
    budgets: budgetsOfKey(services.deps.kv, call.ref.projectId, call.caller.key),
    alongside(tx, entry) {
      safely(() => tx.emit(...callEndedEvents(call, ending)));
      safely(() => {
        if (call.cache) keepInCache(services, tx, { call, usage, ending });
        keptBytes = keep(services, tx, { call, kept, usage });
      });
      safely(() => alongside?.(tx, entry));
    },
  };
  call.isEnding = true;
  const settled = await charge(services, settlement).catch((error) => {
    safely(() => telemetry.end(failedEnding(error)));
    const { cost, usage: { source, price: _, ...used } } = settlement;
    const lost = { ...used, source, cost: formatAmount(cost), ...errorFields(error) };
    services.deps.log("error", "charge_lost", { chat: id, ...lost });
    throw error;
  });
  safely(() => countSettled(services, call, { usage, ending, bill }));
  safely(() => {
    services.keptQuota.added(call.ref, keptBytes);
    telemetry.use = { ...attemptsMade(call), usage, ...costsOf(settled.entry) };
    telemetry.end(ending);
  });
  return settled;
}

/** What a call is charged for, and what comes with the charge. */
interface CallSettlement {
  usage: TokenUsage;
  ending: CallEnding;
  /** Ids of the response that its user may refer to. */
  kept?: KeptIds | null | undefined;
  alongside?: Settlement["alongside"];
}

/** Counts a call that was charged; `bill` is null where none could be made. */
function countSettled(
  services: InferenceDeps,
  call: AdmittedCall,
  { usage, ending, bill }: Pick<CallSettlement, "usage" | "ending"> & { bill: CallBill | null },
): void {
  call.permit.count(inputTokensOf(usage) + outputTokensOf(usage));
  countFailure(services.deps, call, ending);
  if (!call.isRouted) return;
  if (ending.kind === "completed") services.targetHealth.succeeded(call.target.target);
  countAttempts(services, call, bill);
}

/** Runs a step that must not prevent a charge: a fault of ours in it is logged. */
function withoutFault(services: InferenceDeps, call: AdmittedCall, step: () => void): void {
  try {
    step();
  } catch (error) {
    logFault(services, call, error);
  }
}

/** Logs a fault of ours after an upstream has answered. */
export function logFault({ deps }: InferenceDeps, call: AdmittedCall, error: unknown): void {
  const { id: chat, requestId } = call;
  deps.log("error", "call_fault", { requestId, chat, ...errorFields(error) });
}

/** Notes what a response reports that is not as expected. */
function noteReports({ reasoningModels, deps }: InferenceDeps, call: AdmittedCall): void {
  const { id: chat, requestId, target, meter: { doubtful, reasoning } } = call;
  if (reasoning !== null) reasoningModels.note(target.upstream.url, target.model, reasoning);
  if (doubtful) deps.log("warn", "usage_doubtful", { requestId, chat, ...countsOf(doubtful) });
}

/** What is charged. Where a fault of ours prevents its bill, that is all that was set aside. */
function billedOrHeld(
  services: InferenceDeps,
  call: AdmittedCall,
  usage: TokenUsage,
): { cost: Amount; usage: EntryUsage; bill: CallBill | null } {
  try {
    const bill = billOf(services, call, usage);
    return { cost: bill.cost, usage: recordUsage(call, usage, bill), bill };
  } catch (error) {
    logFault(services, call, error);
    const { held, input: { model }, requestId } = call;
    const none = { input: "0", output: "0", markupPercent: "0", requestFee: "0" };
    const price = { ...none, stated: formatAmount(held) };
    const recorded = { model, requestId, ...storeTokens(usage), price };
    return { cost: held, usage: { ...recorded, source: "estimated" }, bill: null };
  }
}

/** What the log of requests says of an entry's costs. */
function costsOf(entry: Entry): { cost: string; upstreamCost: string | null } {
  return { cost: absoluteAmount(entry), upstreamCost: entry.usage?.upstreamCost ?? null };
}

/** What the log of requests says of an admitted call's attempts. */
function attemptsMade({ isRouted, target, failed, firstTokenMs }: AdmittedCall) {
  const upstream = isRouted ? target.upstream.name : null;
  return { firstTokenMs, upstream, attempts: failed.length + 1 };
}

/** Counts the attempts of a call that has ended; `bill` is null where nothing was charged. */
function countAttempts(
  { deps: { committer, clock, metrics } }: InferenceDeps,
  { target, firstTokenMs, failed, caller }: AdmittedCall,
  bill: CallBill | null,
): void {
  const { id: projectId, currency } = caller.snapshot.project;
  const { cost: amount = zero, upstreamCost = null } = bill ?? {};
  const before = failed.map((attempt) => ({ ...attempt, firstTokenMs: null, amount: zero }));
  for (const attempt of [...before, { target, firstTokenMs, amount, upstreamCost }]) {
    const { target: { upstream: { name: upstream }, model }, upstreamCost: known } = attempt;
    const cost = known ?? zero;
    if (cost > zero) metrics.target(upstream).cost(currency).add(Number(formatAmount(cost)));
    const counted = { ...attempt, projectId, upstream, model, upstreamCost: cost, at: clock.now() };
    committer.count(countAttemptHourly(counted));
  }
}

/** Remembers what its user may refer to later; returns how many bytes are stored of a turn. */
function keep(
  services: InferenceDeps,
  tx: AccountTx,
  { call, kept, usage }: {
    call: AdmittedCall;
    kept: KeptIds | null | undefined;
    usage: TokenUsage;
  },
): number {
  if (!kept || call.cache?.hit) return 0;
  return rememberResponse(services, tx, keptResponse(call, kept, usage));
}

function keptResponse(call: AdmittedCall, kept: KeptIds, usage: TokenUsage): KeptResponse {
  const { name } = call.target.upstream;
  const upstream = call.isRouted ? name : null;
  return { ref: call.ref, kept, usage, upstream, turn: turnOf(call) };
}

/** The request's part of a turn that the upstream does not keep; null where it keeps it. */
function turnOf(
  { isBridged, format, input, previousResponse, history }: AdmittedCall,
): RequestTurn | null {
  if (!isBridged || !format.inputItems) return null;
  return {
    previous: previousResponse,
    input: format.inputItems(input).slice(history?.items ?? 0),
    history,
    leastTokens: (items) =>
      leastTokensNow(format.promptTexts({ ...input, body: { input: [...items] } })),
  };
}

async function charge({ holds, deps: { clock } }: InferenceDeps, settlement: Settlement) {
  const startedAt = clock.elapsed();
  for (let attempt = 0;; attempt++) {
    try {
      const settled = await holds.settle({ ...settlement, isRetry: attempt > 0 });
      if (settled.kind === "settled") return settled;
      break;
    } catch (error) {
      const isRefused = error instanceof ApiError && error.status < 500;
      const retryForMs = isRefused ? refusedForMs : holdLifetimeMs;
      if (clock.elapsed() - startedAt >= retryForMs) throw error;
      await clock.sleep(Math.min(retryMsMax, firstRetryMs * 2 ** attempt));
    }
  }
  throw new ApiError(503, {
    message: "The response took longer than its hold on the balance could be kept.",
    type: "service_unavailable_error",
    code: "hold_lost",
  });
}

/** The counts that a provider reported. */
function countsOf({ prompt_tokens, completion_tokens }: JsonObject) {
  const count = (value: unknown) => (typeof value === "number" ? value : null);
  return { promptTokens: count(prompt_tokens), completionTokens: count(completion_tokens) };
}

function recordUsage(
  call: AdmittedCall,
  usage: TokenUsage,
  bill: CallBill,
): EntryUsage {
  const { price, used } = bill;
  const upstreamCost = upstreamCostOf(call, bill);
  const { format, input: { model }, requestId, meter: { servedModel } } = call;
  const { serviceTier, toolCalls } = used;
  const recorded: EntryUsage = {
    model,
    requestId,
    source: isOwnLength(call, bill) ? "estimated" : usage.source,
    ...storeTokens(usage),
    price: recordPrice(price, used),
  };
  if (format.name !== "chat") recorded.endpoint = format.name;
  if (servedModel !== null && servedModel !== model) recorded.servedModel = servedModel;
  if (serviceTier !== null) recorded.serviceTier = serviceTier;
  for (const _ in toolCalls) {
    recorded.toolCalls = { ...toolCalls };
    break;
  }
  if (used.units) Object.assign(recorded, used.units);
  if (call.cache?.hit) recorded.cached = true;
  if (call.isRouted) {
    recorded.upstream = call.target.upstream.name;
    if (call.failed.length > 0) recorded.attempts = call.failed.length + 1;
  }
  if (upstreamCost !== null) recorded.upstreamCost = formatAmount(upstreamCost);
  return recorded;
}

/** What the response and the failed attempts before it are known to cost the project. */
function upstreamCostOf({ failed }: AdmittedCall, { upstreamCost }: CallBill): Amount | null {
  let sum = upstreamCost;
  for (const { upstreamCost: ofAttempt } of failed) {
    if (ofAttempt !== null) sum = toAmount((sum ?? zero) + ofAttempt);
  }
  return sum;
}

/** Whether the length of a sound is charged, and by our own measure. */
function isOwnLength({ meter }: AdmittedCall, { price: { table }, used: { units } }: CallBill) {
  const seconds = units?.audioSeconds;
  if (seconds === undefined || !table.standard.base.units?.audioMinutes) return false;
  return Math.ceil(meter.units.audioSeconds ?? 0) !== seconds;
}

/** Ends a call that produced nothing: no charge, and its idempotency key is free again. */
export async function releaseCall(
  services: InferenceDeps,
  call: AdmittedCall,
  ending: CallEnding,
): Promise<void> {
  const { holds, deps } = services;
  const { ref, id, requestId, idempotency, telemetry } = call;
  call.isEnding = true;
  telemetry.begin("settle");
  countFailure(deps, call, ending);
  if (call.isRouted) {
    const known = call.meter.reported && billOf(services, call, await call.meter.usage());
    countAttempts(services, call, known && { ...known, cost: zero });
  }
  const end = (tx: AccountTx) => {
    tx.emit(...callEndedEvents(call, ending));
    if (idempotency) removeIdempotencyMark(tx, idempotency);
  };
  telemetry.use = { ...attemptsMade(call), usage: null, cost: "0", upstreamCost: null };
  await holds.release(ref, id, end).catch((error) =>
    // The hold then expires by itself.
    deps.log("error", "release_failed", { requestId, chat: id, ...errorFields(error) })
  );
  telemetry.end(ending);
}

function countFailure(
  { committer, clock }: Deps,
  { caller }: AdmittedCall,
  ending: CallEnding,
): void {
  if (ending.kind !== "failed") return;
  const { id } = caller.snapshot.project;
  committer.count(countFailureHourly(id, ending.errorCode, clock.now()));
}
