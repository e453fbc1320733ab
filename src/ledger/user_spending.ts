import { entryKinds } from "../base/entry_kinds.ts";
import { type Amount, fromDecimal, toAmount, zero } from "../base/money.ts";
import type { Kv } from "../store/kv.ts";
import type { AccountRef } from "./account.ts";
import { listActivities } from "./activities.ts";

/** The spending and payments of one user in a period, as far as their entries were read. */
export interface UserSpending {
  /** Responses that were charged. */
  responses: number;
  /** Charged for responses and by manual charges. */
  spent: Amount;
  deposited: Amount;
  /** Spent amounts, one for each entry; `start` is in ms since 1970. */
  amounts: { start: number; amount: Amount }[];
  /** The oldest entry that was read, where older ones of the period were not; else null. */
  since: number | null;
}

/** The most entries that are read, which takes some 10 ms. */
const entriesMax = 300;

/** Adds up a user's entries from `from` until before `to`, in ms, newest first. */
export async function readUserSpending(
  kv: Kv,
  ref: AccountRef,
  { from, to }: { from: number; to: number },
): Promise<UserSpending> {
  const { entries, nextCursor } = await listActivities(kv, ref, {
    limit: entriesMax,
    cursor: undefined,
    since: from,
  });
  const found: UserSpending = {
    responses: 0,
    spent: zero,
    deposited: zero,
    amounts: [],
    since: null,
  };
  for (const { kind, delta, createdAt, carried } of entries) {
    if (createdAt < from || createdAt >= to) continue;
    if (carried) {
      // What was spent before is one amount, of a longer time perhaps.
      found.since = createdAt;
      continue;
    }
    const moved = fromDecimal(delta);
    if (kind === "usage") found.responses++;
    if (kind === "deposit") found.deposited = toAmount(found.deposited + moved);
    if (entryKinds[kind].direction !== "debit") continue;
    const amount = toAmount(-moved);
    found.spent = toAmount(found.spent + amount);
    found.amounts.push({ start: createdAt, amount });
  }
  const last = entries.at(-1);
  if (nextCursor !== null && last && last.createdAt >= from) found.since ??= last.createdAt;
  return found;
}
