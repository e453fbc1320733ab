import { type EntryReason, movementsApart } from "../base/entry_reasons.ts";
import { type StoredTokens, tokenClasses } from "../base/token_classes.ts";
import { type Amount, fromDecimal } from "../base/money.ts";
import { sumKey } from "../store/keys.ts";
import type { Increment } from "../store/kv.ts";

/** The field of charges that are no use. */
export const otherCharges = "other_charge";

/** The part of an entry that is summed. */
interface CountedEntry {
  projectId: string;
  kind: string;
  /** Whether it is for a use of the app: a charge may have another reason. */
  isUse: boolean;
  /** The amount due: what moved, and the shortfall. */
  amount: Amount;
  shortfall: Amount;
  usage: (Partial<StoredTokens> & { model: string; upstreamCost?: string }) | null;
  /** In milliseconds since 1970. */
  at: number;
}

/** The position of the amount among a model's values. */
export const costPosition = 6;
/** The position of the shortfall among a model's values. */
export const shortfallPosition = 7;

/** The position of what responses cost by their providers' price lists. */
export const upstreamCostPosition = 16;
/** The position of what was due for those responses. */
export const costedPosition = 17;

const tokenFields = tokenClasses.map(({ field, position }) => ({ field, position }));

const hourMs = 60 * 60 * 1000;

/** Returns the start of the hour of a time; both in milliseconds since 1970. */
export function startOfHour(at: number): number {
  return Math.floor(at / hourMs) * hourMs;
}

/**
 * Returns an entry's increment, to be counted in the entry's own write: a response by its model,
 * a charge that is no use apart, other entries by kind.
 */
export function countEntryHourly(
  { projectId, kind, isUse, amount, shortfall, usage, at }: CountedEntry,
): Increment {
  const key = sumKey(projectId, startOfHour(at));
  if (!usage) {
    const field = kind === "charge" && !isUse ? otherCharges : kind;
    return { key, field, values: [1n, amount, shortfall] };
  }
  const values = [1n, 0n, 0n, 0n, 0n, 0n, amount, shortfall];
  for (const { field, position } of tokenFields) {
    const tokens = usage[field] ?? 0;
    if (tokens === 0) continue;
    // Values end with the last class that is not zero: most models never use the later ones.
    while (values.length < position) values.push(0n);
    values[position] = BigInt(tokens);
  }
  if (usage.upstreamCost !== undefined) {
    while (values.length < upstreamCostPosition) values.push(0n);
    values.push(fromDecimal(usage.upstreamCost), amount);
  }
  return { key, field: `model:${usage.model}`, values };
}

/**
 * Returns the increment of a refund of a response or a charge, to be counted in its own write: how
 * many, the amount, and the amount where the upstream cost of the refunded entry is known. What was
 * no use is taken from such charges again.
 */
export function countGivenBackHourly(
  { projectId, isUse, usage, amount, at }: Omit<CountedEntry, "kind" | "shortfall">,
): Increment {
  const key = sumKey(projectId, startOfHour(at));
  if (!isUse) return { key, field: otherCharges, values: [0n, -amount, 0n] };
  const values = [1n, amount, usage?.upstreamCost === undefined ? 0n : amount];
  return { key, field: usage ? `back:${usage.model}` : "back", values };
}

/** The group of fields of movements that their kinds do not tell. */
export const movedGroup = "moved:";

/**
 * Returns the increment of a movement that the kind of its entry does not tell: how many, and the
 * amount. Null for others.
 */
export function countMovedHourly(
  { projectId, reason, isCredit, amount, at }: {
    projectId: string;
    reason: EntryReason;
    isCredit: boolean;
    amount: Amount;
    at: number;
  },
): Increment | null {
  const direction = isCredit ? "credit" : "debit";
  const moved = movementsApart.find((each) =>
    each.reason === reason && each.direction === direction
  );
  if (!moved) return null;
  const key = sumKey(projectId, startOfHour(at));
  return { key, field: `${movedGroup}${moved.name}`, values: [1n, amount] };
}

/** Returns the increment of a user's first entry. */
export function countNewUserHourly(projectId: string, at: number): Increment {
  return { key: sumKey(projectId, startOfHour(at)), field: "new_user", values: [1n] };
}

/** Returns the increment of a manual charge that was refused: it is no request. */
export function countRefusedChargeHourly(
  projectId: string,
  reason: string,
  at: number,
): Increment {
  return {
    key: sumKey(projectId, startOfHour(at)),
    field: `refused_charge:${reason}`,
    values: [1n],
  };
}

/** Returns the increment of a request for a model that has no price. */
export function countUnpricedHourly(projectId: string, model: string, at: number): Increment {
  return { key: sumKey(projectId, startOfHour(at)), field: `unpriced:${model}`, values: [1n] };
}

/** Returns the increment of a request that failed or was refused, by its reason or error code. */
export function countReasonHourly(
  projectId: string,
  outcome: "failed" | "refused",
  reason: string,
  at: number,
): Increment {
  return { key: sumKey(projectId, startOfHour(at)), field: `${outcome}:${reason}`, values: [1n] };
}

/** Attempts of one target: a model of an upstream that a route leads to. */
interface CountedAttempt {
  projectId: string;
  upstream: string;
  model: string;
  /** From its start to the first event or the end of a whole response; null where it failed. */
  firstTokenMs: number | null;
  /** The charge of the attempt's response. */
  amount: Amount;
  /** The attempt's known cost by the provider's price list. */
  upstreamCost: Amount;
  /** In milliseconds since 1970. */
  at: number;
}

/** Returns the increment of one attempt: attempts, answers, their ms, the charge and the cost. */
export function countAttemptHourly(
  { projectId, upstream, model, firstTokenMs, amount, upstreamCost, at }: CountedAttempt,
): Increment {
  const answers = firstTokenMs === null ? [0n, 0n] : [1n, BigInt(Math.round(firstTokenMs))];
  return {
    key: sumKey(projectId, startOfHour(at)),
    field: `target:${upstream} ${model}`,
    values: [1n, ...answers, amount, upstreamCost],
  };
}

/** Returns the increment of users who saw the paywall, and of those who then paid. */
export function countPaywallHourly(
  projectId: string,
  { saw, paid }: { saw: bigint; paid: bigint },
  at: number,
): Increment {
  return { key: sumKey(projectId, startOfHour(at)), field: "paywall", values: [saw, paid] };
}

/** Upper bounds of the classes in which times are counted, in ms; the last class has none. */
export const timeClassesMs = [250, 500, 1_000, 2_000, 5_000, 10_000, 30_000] as const;

/**
 * How a request is counted; exactly one of these. `repeated`: it was answered with an earlier
 * response, from the cache or under an idempotency key. Those and `refused` ones were not sent.
 */
export type CountedOutcome = "completed" | "failed" | "canceled" | "refused" | "repeated";

/** A request for a model. */
interface CountedCall {
  projectId: string;
  model: string;
  outcome: CountedOutcome;
  latencyMs: number;
  /** Null where nothing arrived from the upstream. */
  firstTokenMs: number | null;
  /** In milliseconds since 1970. */
  at: number;
}

/** The positions of canceled requests in a model's values; repeated ones come next. */
export const canceledCallsPosition = 6 + timeClassesMs.length + 1;
/** The position of canceled requests in a key's values; repeated ones come next. */
export const canceledOfKeyPosition = 9;

/**
 * Returns the increment of one request for a model: requests, failed and refused ones, the ms of
 * the others, how many had a first token, its ms, how many had it in each class of times, canceled
 * and repeated requests.
 */
export function countCallHourly(
  { projectId, model, outcome, latencyMs, firstTokenMs, at }: CountedCall,
): Increment {
  const values = endingOf(outcome, latencyMs);
  if (firstTokenMs !== null) {
    const found = timeClassesMs.findIndex((most) => firstTokenMs <= most);
    const place = found < 0 ? timeClassesMs.length : found;
    values.push(1n, BigInt(firstTokenMs), ...Array<bigint>(place).fill(0n), 1n);
  }
  addUnusual(values, outcome, canceledCallsPosition);
  return { key: sumKey(projectId, startOfHour(at)), field: `calls:${model}`, values };
}

/** One request: whether it failed or was refused, and otherwise its ms. */
function endingOf(outcome: CountedOutcome, latencyMs: number): bigint[] {
  return [
    1n,
    outcome === "failed" ? 1n : 0n,
    outcome === "refused" ? 1n : 0n,
    outcome === "failed" || outcome === "refused" ? 0n : BigInt(latencyMs),
  ];
}

/** Adds canceled and repeated requests, which most hours do not have, at the end of the values. */
function addUnusual(values: bigint[], outcome: CountedOutcome, position: number): void {
  if (outcome !== "canceled" && outcome !== "repeated") return;
  const place = outcome === "canceled" ? position : position + 1;
  while (values.length < place) values.push(0n);
  values.push(1n);
}

/** A request that was made with an API key. */
interface CountedKeyRequest {
  projectId: string;
  keyId: string;
  outcome: CountedOutcome;
  latencyMs: number;
  inputTokens: number;
  outputTokens: number;
  cost: Amount;
  /** The call's cost by the provider's price list; null where that is not known. */
  upstreamCost: Amount | null;
  /** In milliseconds since 1970. */
  at: number;
}

/**
 * Returns the increment of one request of a key: requests, failed and refused ones, the ms of the
 * others, input and output tokens, the cost, the known upstream cost, the cost of the requests for
 * which it is known, canceled and repeated requests.
 */
export function countKeyHourly(
  { projectId, keyId, outcome, latencyMs, inputTokens, outputTokens, cost, upstreamCost, at }:
    CountedKeyRequest,
): Increment {
  const values = endingOf(outcome, latencyMs);
  if (cost > 0n || inputTokens > 0) {
    values.push(BigInt(inputTokens), BigInt(outputTokens), cost);
    if (upstreamCost !== null) values.push(upstreamCost, cost);
  }
  addUnusual(values, outcome, canceledOfKeyPosition);
  return { key: sumKey(projectId, startOfHour(at)), field: `key:${keyId}`, values };
}
