import { type Amount, toAmount } from "../base/money.ts";
import type { Addition } from "../store/kv.ts";
import { tallyEntry } from "../summaries/tally.ts";
import { type Entry, tokensOf } from "./entry.ts";
import type { Spending } from "./spending.ts";

/** How an entry changed the balance, and what of it could not be taken. */
interface Movement {
  projectId: string;
  delta: Amount;
  shortfall: Amount;
  spending: Spending;
}

/** Counts an entry in its user's month, and gives what it adds to its project's sums. */
export function countEntry(entry: Entry, movement: Movement): Addition {
  const { projectId, delta, shortfall, spending } = movement;
  const { kind, usage, createdAt: at } = entry;
  const amount = toAmount(delta < 0n ? -delta : delta);
  if (kind === "usage" || kind === "charge" || kind === "expired") {
    const tokens = usage ? tokensOf(usage) : 0;
    spending.countUse({ requests: usage ? 1 : 0, tokens, spent: amount });
  }
  return tallyEntry({ projectId, kind, amount, shortfall, usage, at });
}
