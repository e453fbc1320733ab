import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../base/money.ts";
import { entryKey, refundedKey } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { type Budget, count, type Counts, readOrNull } from "../store/scan.ts";
import type { Account } from "./account.ts";
import type { Walk } from "./schema.ts";
import { amountOf, type Entry } from "./entry.ts";
import { type CostsOf, faultsOfEntry } from "./verify_entry.ts";
import { linkOf, wholeEntry, wholeRefunded } from "./verify_records.ts";
import { newerRefunds, refundOf } from "./verify_refunds.ts";

interface Step {
  walk: Walk;
  entry: Entry;
  /** The record of how much of it has been refunded. */
  total: Uint8Array | null;
}

/** A walk over an account's entries as the account is now, from its last one to its first. */
export function startWalk({ key }: Row, { last, seq, balance, formerly }: Account): Walk {
  const [owner, name] = [String(key[1]), String(key[2])];
  const refunds: Walk["refunds"] = [];
  return {
    owner,
    name,
    last,
    next: last,
    seq,
    balance: formatAmount(balance),
    refunds,
    forgotten: false,
    formerly,
  };
}

/**
 * Walks on until the first entry or the end of the budget: entries never change, so money may move
 * meanwhile. Gives the faults; the walk has ended when its `next` is null. An entry that cannot be
 * read is passed by: it is named where all that are stored are listed.
 */
export async function walkOn(
  kv: Kv,
  walk: Walk,
  { budget, counts, costsOf, onEntry }: {
    budget: Budget;
    counts: Counts;
    costsOf: CostsOf;
    /** Null for one that cannot be read. */
    onEntry(entry: Entry | null): void;
  },
): Promise<string[]> {
  const about = `account ${walk.owner}/${walk.name}`;
  const faults: string[] = [];
  const read = () => walk.next === null ? null : kv.get(entryKey(walk.owner, walk.next));
  let row = await read();
  while (row && walk.next !== null && !budget.isUsedUp) {
    if (!row.value) faults.push(`${about}: entry ${walk.next}, number ${walk.seq}, is missing`);
    const entry = readOrNull(row.value, wholeEntry);
    if (row.value) onEntry(entry);
    budget.spend(2);
    if (!entry) {
      passBy(walk, row, counts);
      row = await read();
      continue;
    }
    const totalKey = refundedKey(entry.projectId ?? walk.owner, entry.id);
    const before = entryKey(walk.owner, entry.prev ?? "");
    const [total, previous] = await kv.getMany([totalKey, before]);
    count(counts, "entries");
    const found = [
      ...faultsOfEntry(walk, entry, costsOf),
      ...await faultsOfRefunds(kv, { walk, entry, total: total?.value ?? null }),
    ];
    faults.push(...found.map((fault) => `${about}: entry ${entry.id} ${fault}`));
    noteRefund(walk, entry);
    goBack(walk, entry);
    row = previous ?? null;
  }
  if (walk.next !== null) {
    if (walk.refunds.length > carriedRefundsMax) forgetRefunds(walk, counts);
    return faults;
  }
  for (const [id] of walk.refunds) {
    faults.push(`${about}: entry ${id} is refunded, but is not an entry of this account`);
  }
  return faults;
}

/** To the entry before; from there on by what this one says, so that one fault is told once. */
function goBack(walk: Walk, entry: Entry): void {
  // What does not count down would lead in a circle.
  walk.next = entry.seq > 1 && entry.seq <= walk.seq ? entry.prev : null;
  walk.seq = entry.seq - 1;
  walk.balance = formatAmount(fromDecimal(entry.balanceAfter) - fromDecimal(entry.delta));
}

/** To the entry before one that cannot be read, or is missing, as long as it still leads there. */
function passBy(walk: Walk, { value }: Row, counts: Counts): void {
  const link = readOrNull(value, linkOf);
  walk.next = link && link.seq > 1 && link.seq === walk.seq ? link.prev : null;
  walk.seq--;
  walk.balance = null;
  // It may be a refund.
  forgetRefunds(walk, counts);
}

/** Refunds come after what they refund, so going back all are met before it is. */
async function faultsOfRefunds(kv: Kv, { walk, entry, total: stored }: Step): Promise<string[]> {
  const at = walk.refunds.findIndex(([id]) => id === entry.id);
  const [met] = at < 0 ? [] : walk.refunds.splice(at, 1);
  const sum = met ? fromDecimal(met[1]) : zero;
  const total = stored ? readOrNull(stored, wholeRefunded) : zero;
  if (total === null) return ["has a total of its refunds that cannot be read"];
  const faults: string[] = [];
  if (total > fromDecimal(amountOf(entry))) {
    faults.push(`of ${amountOf(entry)} is refunded with ${formatAmount(total)}, which is more`);
  }
  // A refund that came after the account was read is in the total, and not among those met.
  if (total !== sum && !walk.forgotten) {
    const newer = await newerRefunds(kv, walk, entry.id);
    if (newer && !sumsOf(sum, newer).includes(total)) {
      faults.push(`has refunds of ${formatAmount(sum)}, and a total of ${formatAmount(total)}`);
    }
  }
  return faults;
}

function noteRefund(walk: Walk, entry: Entry): void {
  const original = entry.refundedActivityId;
  if (original === null || walk.forgotten) return;
  const known = walk.refunds.find(([id]) => id === original);
  if (known) known[1] = formatAmount(fromDecimal(known[1]) + refundOf(entry));
  else walk.refunds.push([original, formatAmount(refundOf(entry))]);
}

const carriedRefundsMax = 100;

/** Between two pages only so many are carried along; what is left out is counted, not hidden. */
function forgetRefunds(walk: Walk, counts: Counts): void {
  if (walk.forgotten) return;
  walk.refunds = [];
  walk.forgotten = true;
  count(counts, "accountsWithRefundsNotSummed");
}

/** The sum, and the sum after each one more. */
function sumsOf(sum: Amount, amounts: readonly Amount[]): Amount[] {
  const sums = [sum];
  for (const amount of amounts) sums.push(toAmount((sums.at(-1) ?? zero) + amount));
  return sums;
}
