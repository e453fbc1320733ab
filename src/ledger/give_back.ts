import type { Amount } from "../base/money.ts";
import { countGivenBackHourly } from "../summaries/hourly_counters.ts";
import type { AccountTx } from "./account_tx.ts";
import { type Entry, isUse, type NewEntry } from "./entry.ts";
import type { EntryOrigin } from "./events.ts";

/** Credits what a response or a charge took, and counts it against its model's revenue. */
export function giveBack(
  tx: AccountTx,
  amount: Amount,
  { entry, origin, original }: { entry: NewEntry; origin: EntryOrigin; original: Entry },
): Entry {
  const { usage } = original;
  const counted = { projectId: tx.snapshot.project.id, usage, isUse: isUse(original), amount };
  tx.count(countGivenBackHourly({ ...counted, at: tx.now }));
  return tx.credit(amount, entry, origin);
}
