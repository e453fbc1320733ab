import type { Amount } from "../base/money.ts";
import { sumKey } from "../store/keys.ts";
import type { Increment } from "../store/kv.ts";

/** Token classes of an answer, which never overlap; reasoning is inside the output. */
interface ModelTokens {
  model: string;
  uncachedInputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
  outputTokens: number;
  reasoningTokens: number;
}

/** As much of an entry as is added up. */
interface CountedEntry {
  projectId: string;
  kind: string;
  /** What was due: the amount that moved, and what of it could not be collected. */
  amount: Amount;
  shortfall: Amount;
  usage: ModelTokens | null;
  /** In milliseconds since 1970. */
  at: number;
}

const hourMs = 60 * 60 * 1000;

/** The start of the hour that a time is in; both in milliseconds since 1970. */
export function startOfHour(at: number): number {
  return Math.floor(at / hourMs) * hourMs;
}

/** An entry, to be counted in its own write: an answer by its model, other money by its kind. */
export function countEntryHourly(
  { projectId, kind, amount, shortfall, usage, at }: CountedEntry,
): Increment {
  const key = sumKey(projectId, startOfHour(at));
  if (!usage) return { key, field: kind, values: [1n, amount, shortfall] };
  const values = [
    1n,
    BigInt(usage.uncachedInputTokens),
    BigInt(usage.cachedInputTokens),
    BigInt(usage.cacheWriteTokens),
    BigInt(usage.outputTokens),
    BigInt(usage.reasoningTokens),
    amount,
    shortfall,
  ];
  return { key, field: `model:${usage.model}`, values };
}

/** A request that was refused, for want of money or by a limit. */
export function countRefusalHourly(projectId: string, reason: string, at: number): Increment {
  return { key: sumKey(projectId, startOfHour(at)), field: `refused:${reason}`, values: [1n] };
}

/** An answer that a fault ended, whether or not something of it was charged. */
export function countFailureHourly(projectId: string, code: string, at: number): Increment {
  return { key: sumKey(projectId, startOfHour(at)), field: `failed:${code}`, values: [1n] };
}
