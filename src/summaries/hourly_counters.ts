import { type StoredTokens, tokenClasses } from "../base/token_classes.ts";
import { type Amount, fromDecimal } from "../base/money.ts";
import { sumKey } from "../store/keys.ts";
import type { Increment } from "../store/kv.ts";

/** The part of an entry that is summed. */
interface CountedEntry {
  projectId: string;
  kind: string;
  /** What was due: the amount that moved, and what could not be collected. */
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
 * other entries by kind.
 */
export function countEntryHourly(
  { projectId, kind, amount, shortfall, usage, at }: CountedEntry,
): Increment {
  const key = sumKey(projectId, startOfHour(at));
  if (!usage) return { key, field: kind, values: [1n, amount, shortfall] };
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

/** Returns the increment of a request that was refused, for lack of money or by a limit. */
export function countRefusalHourly(projectId: string, reason: string, at: number): Increment {
  return { key: sumKey(projectId, startOfHour(at)), field: `refused:${reason}`, values: [1n] };
}

/** Returns the increment of a request for a model that has no price. */
export function countUnpricedHourly(projectId: string, model: string, at: number): Increment {
  return { key: sumKey(projectId, startOfHour(at)), field: `unpriced:${model}`, values: [1n] };
}

/**
 * Returns the increment of a call that ended with an error, whether or not some of it was charged.
 */
export function countFailureHourly(projectId: string, code: string, at: number): Increment {
  return { key: sumKey(projectId, startOfHour(at)), field: `failed:${code}`, values: [1n] };
}

/** Attempts of one target: a model of an upstream that a route leads to. */
interface CountedAttempt {
  projectId: string;
  upstream: string;
  model: string;
  /** From its start to the first event or the end of a whole response; null where it failed. */
  firstTokenMs: number | null;
  /** What was charged for its response. */
  amount: Amount;
  /** What it is known to have cost by the provider's price list. */
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
