import { type Amount, formatAmount, toAmount, zero } from "../../base/money.ts";
import { storeTokens } from "../../base/token_classes.ts";
import type { EntryUsage } from "../../ledger/entry.ts";
import { recordPrice } from "../../pricing/price_record.ts";
import type { TokenUsage } from "../../pricing/usage.ts";
import type { AdmittedCall } from "../call.ts";
import { billOf, type CallBill } from "../meter/bill.ts";
import type { InferenceServices } from "../services.ts";
import { logFault } from "./call_fault.ts";

/** The amount to charge, and the usage that its entry states. */
interface Billed {
  cost: Amount;
  usage: EntryUsage;
  /** Null where a fault of ours prevented a bill: then all that was held is charged. */
  bill: CallBill | null;
}

/** Returns the amount to charge. Where a fault of ours prevents a bill, it is all that was held. */
export function billedOrHeld(
  services: Pick<InferenceServices, "deps" | "prices">,
  call: AdmittedCall,
  usage: TokenUsage,
): Billed {
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

function recordUsage(call: AdmittedCall, usage: TokenUsage, bill: CallBill): EntryUsage {
  const { price, used } = bill;
  const upstreamCost = upstreamCostOf(call, bill);
  const { format, input: { model }, requestId, attempt, failed } = call;
  const { servedModel } = attempt.meter;
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
    recorded.upstream = attempt.target.upstream.name;
    if (failed.length > 0) recorded.attempts = failed.length + 1;
  }
  if (upstreamCost !== null) recorded.upstreamCost = formatAmount(upstreamCost);
  return recorded;
}

/** The known cost, for the project, of the response and of the failed attempts before it. */
function upstreamCostOf({ failed }: AdmittedCall, { upstreamCost }: CallBill): Amount | null {
  let sum = upstreamCost;
  for (const { upstreamCost: ofAttempt } of failed) {
    if (ofAttempt !== null) sum = toAmount((sum ?? zero) + ofAttempt);
  }
  return sum;
}

/** Whether the length of a sound is charged, and by our own measure. */
function isOwnLength(
  { attempt: { meter } }: AdmittedCall,
  { price: { table }, used: { units } }: CallBill,
): boolean {
  const seconds = units?.audioSeconds;
  if (seconds === undefined || !table.standard.base.units?.audioMinutes) return false;
  return Math.ceil(meter.units.audioSeconds ?? 0) !== seconds;
}
