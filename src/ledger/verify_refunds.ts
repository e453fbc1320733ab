import { type Amount, fromDecimal, toAmount } from "../base/money.ts";
import { accountKey, entryKey } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import { readOrNull } from "../store/scan.ts";
import { amountOf, type Entry } from "./entry.ts";
import { isGivenBack } from "./give_back.ts";
import type { Walk } from "./schema.ts";
import { wholeAccount, wholeEntry } from "./verify_records.ts";

/** An account that has grown by more than this while it is looked at is not followed. */
const newerMax = 5_000;

/**
 * How much a refund took of its original: also what was no longer there to be taken back. What gives
 * back is less than nothing.
 */
export function refundOf(entry: Entry): Amount {
  const amount = fromDecimal(amountOf(entry));
  return toAmount((isGivenBack(entry) ? -amount : amount) + fromDecimal(entry.shortfall));
}

/** The refunds of an entry since the walk began, oldest first; null where they cannot all be read. */
export async function newerRefunds(
  kv: Kv,
  { owner, name, last }: Walk,
  originalId: string,
): Promise<Amount[] | null> {
  const account = readOrNull((await kv.get(accountKey(owner, name))).value, wholeAccount);
  const refunds: Amount[] = [];
  let next = account?.last ?? null;
  for (let read = 0; next !== last; read++) {
    if (next === null || read >= newerMax) return null;
    const entry: Entry | null = readOrNull(
      (await kv.get(entryKey(owner, next))).value,
      wholeEntry,
    );
    if (!entry) return null;
    if (entry.refundedActivityId === originalId) refunds.unshift(refundOf(entry));
    next = entry.prev;
  }
  return refunds;
}
