import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../../base/money.ts";
import { accountKey, entryKey } from "../../store/keys.ts";
import type { Kv } from "../../store/kv.ts";
import { countRows, readOrNull, type ScanCounts } from "../../store/scan.ts";
import { absoluteAmount, type Entry } from "../entry.ts";
import type { RefundTotals } from "../entry_reader.ts";
import { isReinstatement } from "../record.ts";
import type { ChainWalk } from "../schema.ts";
import { parseStoredAccount, parseStoredEntry, parseStoredRefunded } from "./schemas.ts";

/**
 * Returns the faults of an entry's refunds. They come after what they refund, so a walk backwards
 * has met all of them.
 */
export async function faultsOfRefunds(
  kv: Kv,
  { walk, entry, total: stored }: { walk: ChainWalk; entry: Entry; total: Uint8Array | null },
  totals: Pick<RefundTotals, "again">,
): Promise<string[]> {
  const at = walk.refunds.findIndex(([id]) => id === entry.id);
  const [met] = at < 0 ? [] : walk.refunds.splice(at, 1);
  // It has the id of an archived entry, which may have been refunded.
  if (entry.kind === "carried") return [];
  const sum = met ? fromDecimal(met[1]) : zero;
  let total = stored ? readOrNull(stored, parseStoredRefunded) : zero;
  // Totals are read before the entries that they belong to.
  if (total !== sum) total = await totals.again(entry);
  if (total === null) return ["has an unreadable total of its refunds"];
  const faults: string[] = [];
  if (total > fromDecimal(absoluteAmount(entry))) {
    faults.push(
      `is refunded with ${formatAmount(total)}, which is more than ${absoluteAmount(entry)}`,
    );
  }
  // A refund made after the account was read is in the total, and the walk has not met it.
  if (total !== sum && !walk.forgotten) {
    const newer = await newerRefunds(kv, walk, entry.id);
    if (newer && !sumsOf(sum, newer).includes(total)) {
      faults.push(
        `has refunds of ${formatAmount(sum)}, but a recorded total of ${formatAmount(total)}`,
      );
    }
  }
  return faults;
}

/** Keeps a refund until the walk meets the entry that was refunded. */
export function noteRefund(walk: ChainWalk, entry: Entry): void {
  const original = entry.refundedActivityId;
  if (original === null || walk.forgotten) return;
  const known = walk.refunds.find(([id]) => id === original);
  if (known) known[1] = formatAmount(fromDecimal(known[1]) + refundTotalOf(entry));
  else walk.refunds.push([original, formatAmount(refundTotalOf(entry))]);
}

/**
 * Drops refunds beyond the number that a page carries. They are counted as unchecked, not hidden.
 */
export function forgetRefunds(walk: ChainWalk, counts: ScanCounts): void {
  if (walk.forgotten) return;
  walk.refunds = [];
  walk.forgotten = true;
  countRows(counts, "accountsWithRefundsNotSummed");
}

/** Returns the sum, and the sum after each further amount. */
function sumsOf(sum: Amount, amounts: readonly Amount[]): Amount[] {
  const sums = [sum];
  for (const amount of amounts) sums.push(toAmount((sums.at(-1) ?? zero) + amount));
  return sums;
}

/**
 * How far an account may have grown since the walk began, in entries: its newer refunds are read up
 * to then.
 */
const newerMax = 5_000;

/**
 * Returns how much a refund took of its original, including what was no longer there to take. A
 * reinstatement is negative.
 */
function refundTotalOf(entry: Entry): Amount {
  const amount = fromDecimal(absoluteAmount(entry));
  return toAmount((isReinstatement(entry) ? -amount : amount) + fromDecimal(entry.shortfall));
}

/**
 * Returns the refunds of an entry since the walk began, oldest first; null where they cannot all be
 * read.
 */
async function newerRefunds(
  kv: Kv,
  { owner, name, last }: ChainWalk,
  originalId: string,
): Promise<Amount[] | null> {
  const account = readOrNull((await kv.get(accountKey(owner, name))).value, parseStoredAccount);
  const refunds: Amount[] = [];
  let next = account?.last ?? null;
  for (let read = 0; next !== last; read++) {
    if (next === null || read >= newerMax) return null;
    const entry: Entry | null = readOrNull(
      (await kv.get(entryKey(owner, next))).value,
      parseStoredEntry,
    );
    if (!entry) return null;
    if (entry.refundedActivityId === originalId) refunds.unshift(refundTotalOf(entry));
    next = entry.prev;
  }
  return refunds;
}
