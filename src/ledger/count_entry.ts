import { entryKinds } from "../base/entry_kinds.ts";
import { type Amount, toAmount, zero } from "../base/money.ts";
import type { Increment } from "../store/kv.ts";
import {
  countEntryHourly,
  countMovedHourly,
  countNewUserHourly,
} from "../summaries/hourly_counters.ts";
import { type Entry, entryReason, isUse, totalTokens } from "./entry.ts";
import type { SpendLimits } from "./spend_limits.ts";

/** How an entry changed the balance, and what could not be collected. */
interface Movement {
  projectId: string;
  delta: Amount;
  shortfall: Amount;
  spending: SpendLimits;
}

/** Counts an entry toward its user's month, and returns what it adds to the project's sums. */
export function countEntry(entry: Entry, movement: Movement): Increment[] {
  const { projectId, delta, spending } = movement;
  const { kind, usage, createdAt: at } = entry;
  const amount = toAmount(delta < 0n ? -delta : delta);
  if (entryKinds[kind].direction === "debit") {
    const tokens = usage ? totalTokens(usage) : 0;
    const spent = isUse(entry) ? amount : zero;
    spending.countUse({ requests: usage ? 1 : 0, tokens, spent });
  }
  const counted = countEntryHourly({ ...movement, kind, isUse: isUse(entry), amount, usage, at });
  const increments = [counted];
  const isCredit = delta > 0n;
  const reason = entryReason(entry);
  const moved = countMovedHourly({ projectId, reason, isCredit, amount, at });
  if (moved) increments.push(moved);
  if (entry.seq === 1) increments.push(countNewUserHourly(projectId, at));
  return increments;
}
