import { type Amount, fromDecimal, toAmount } from "../base/money.ts";
import { accountKey } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import { decodeAccount } from "./account.ts";
import { amountOf, type Entry } from "./entry.ts";
import { isGivenBack } from "./give_back.ts";
import type { Walk } from "./schema.ts";
import { readEntry } from "./store.ts";

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

/** The refunds of an entry since the walk began, oldest first; null where they are too far away. */
export async function newerRefunds(
  kv: Kv,
  { owner, name, last }: Walk,
  originalId: string,
): Promise<Amount[] | null> {
  const account = decodeAccount((await kv.get(accountKey(owner, name))).value);
  const refunds: Amount[] = [];
  let next = account.last;
  for (let read = 0; next !== last; read++) {
    const entry: Entry | null = next === null ? null : await readEntry(kv, owner, next);
    if (!entry || read >= newerMax) return null;
    if (entry.refundedActivityId === originalId) refunds.unshift(refundOf(entry));
    next = entry.prev;
  }
  return refunds;
}
