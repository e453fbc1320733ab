import { type StoredTokens, tokenClasses } from "../base/token_classes.ts";
import type { Amount } from "../base/money.ts";
import { sumKey } from "../store/keys.ts";
import type { Increment } from "../store/kv.ts";

/** As much of an entry as is added up. */
interface CountedEntry {
  projectId: string;
  kind: string;
  /** What was due: the amount that moved, and what of it could not be collected. */
  amount: Amount;
  shortfall: Amount;
  usage: (Partial<StoredTokens> & { model: string }) | null;
  /** In milliseconds since 1970. */
  at: number;
}

/** Where the values of a model have the amount that moved. */
export const costPosition = 6;
/** Where a model has what could not be collected. */
export const shortfallPosition = 7;

const tokenFields = tokenClasses.map(({ field, position }) => ({ field, position }));

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
  const values = [1n, 0n, 0n, 0n, 0n, 0n, amount, shortfall];
  for (const { field, position } of tokenFields) {
    const tokens = usage[field] ?? 0;
    if (tokens === 0) continue;
    // Values end with the last class that has any: most models never use the later ones.
    while (values.length < position) values.push(0n);
    values[position] = BigInt(tokens);
  }
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
