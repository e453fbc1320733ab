import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../base/money.ts";
import { entryKey, refundedKey } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { type Budget, count, type Counts, readOrNull } from "../store/scan.ts";
import { decodeAccount } from "./account.ts";
import type { Walk } from "./schema.ts";
import { amountOf, type Entry } from "./entry.ts";
import { isGivenBack } from "./give_back.ts";
import { decodeEntry, decodeRefunded } from "./store.ts";
import { newerRefunds, refundOf } from "./verify_refunds.ts";

interface Step {
  walk: Walk;
  entry: Entry;
  /** How much of it has been refunded, by its own record. */
  refunded: Amount | null;
}

/** A walk over an account's entries as the account is now, from its last one to its first. */
export function startWalk({ key, value }: Row): Walk {
  const { last, seq, balance, formerly } = decodeAccount(value);
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
 * meanwhile. Gives the faults; the walk has ended when its `next` is null.
 */
export async function walkOn(
  kv: Kv,
  walk: Walk,
  { budget, counts, onEntry }: {
    budget: Budget;
    counts: Counts;
    onEntry(entry: Entry): void;
  },
): Promise<string[]> {
  const about = `account ${walk.owner}/${walk.name}`;
  const faults: string[] = [];
  let row = walk.next === null ? null : await kv.get(entryKey(walk.owner, walk.next));
  while (row && walk.next !== null && !budget.isUsedUp) {
    const entry = readOrNull(row.value, decodeWhole);
    if (!entry) {
      const what = row.value ? "cannot be read" : "is missing";
      faults.push(`${about}: entry ${walk.next}, number ${walk.seq}, ${what}`);
      walk.next = null;
      return faults;
    }
    const totalKey = refundedKey(entry.projectId ?? walk.owner, entry.id);
    const before = entryKey(walk.owner, entry.prev ?? "");
    const [total, previous] = await kv.getMany([totalKey, before]);
    budget.spend(2);
    count(counts, "entries");
    onEntry(entry);
    const refunded = readOrNull(total?.value ?? null, decodeRefunded);
    const found = [
      ...faultsOfEntry(walk, entry),
      ...await faultsOfRefunds(kv, { walk, entry, refunded }),
    ];
    faults.push(...found.map((fault) => `${about}: entry ${entry.id} ${fault}`));
    goBack(walk, entry);
    row = previous ?? null;
  }
  if (walk.next !== null) {
    forgetRefunds(walk, counts);
    return faults;
  }
  for (const [id] of walk.forgotten ? [] : walk.refunds) {
    faults.push(`${about}: entry ${id} is refunded, but is not an entry of this account`);
  }
  return faults;
}

/** With its amounts read, which throws where they are none. */
function decodeWhole(bytes: Uint8Array): Entry {
  const entry = decodeEntry(bytes);
  [entry.delta, entry.balanceAfter, entry.heldAfter, entry.shortfall].forEach(fromDecimal);
  return entry;
}

/** To the entry before; from there on by what this one says, so that one fault is told once. */
function goBack(walk: Walk, entry: Entry): void {
  // What does not count down would lead in a circle.
  walk.next = entry.seq > 1 && entry.seq <= walk.seq ? entry.prev : null;
  walk.seq = entry.seq - 1;
  walk.balance = formatAmount(fromDecimal(entry.balanceAfter) - fromDecimal(entry.delta));
}

const carriedRefundsMax = 100;
const creditKinds: readonly string[] = ["deposit", "trial"];
const debitKinds: readonly string[] = ["charge", "usage", "expired"];

function faultsOfEntry(walk: Walk, entry: Entry): string[] {
  const { seq, prev, kind } = entry;
  const [delta, balanceAfter, heldAfter] = [entry.delta, entry.balanceAfter, entry.heldAfter]
    .map(fromDecimal);
  if (delta === undefined || balanceAfter === undefined || heldAfter === undefined) return [];
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(what));
  say(entry.id !== walk.next, `is stored as ${walk.next}`);
  say(seq !== walk.seq, `has number ${seq}, not ${walk.seq}`);
  say((prev === null) !== (seq === 1), `is number ${seq} and names ${prev ?? "none"} before it`);
  say(
    balanceAfter !== fromDecimal(walk.balance),
    `has balanceAfter ${entry.balanceAfter}, not ${walk.balance}`,
  );
  say(
    seq === 1 && delta !== balanceAfter,
    `is the first: its delta ${entry.delta} is not the balance after it`,
  );
  say(balanceAfter < 0n, `leaves ${entry.balanceAfter}, less than zero`);
  say(heldAfter < 0n || heldAfter > balanceAfter, `has heldAfter ${entry.heldAfter}`);
  const short = fromDecimal(entry.shortfall);
  const isSound = isGivenBack(entry) ? short <= 0n : short >= 0n;
  say(!isSound, `has shortfall ${entry.shortfall}`);
  say(creditKinds.includes(kind) && delta < 0n, `is a ${kind} of ${entry.delta}`);
  say(debitKinds.includes(kind) && delta > 0n, `is a ${kind} of ${entry.delta}`);
  say(
    entry.projectId === undefined && ![walk.name, walk.formerly].includes(entry.user),
    `is of user ${entry.user}, not ${walk.name}`,
  );
  return faults;
}

/** Refunds come after what they refund, so going back all are met before it is. */
async function faultsOfRefunds(kv: Kv, { walk, entry, refunded }: Step): Promise<string[]> {
  const at = walk.refunds.findIndex(([id]) => id === entry.id);
  const [met] = at < 0 ? [] : walk.refunds.splice(at, 1);
  const sum = met ? fromDecimal(met[1]) : zero;
  const total = refunded ?? zero;
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
  const original = entry.refundedActivityId;
  if (original !== null) {
    const known = walk.refunds.find(([id]) => id === original);
    if (known) known[1] = formatAmount(fromDecimal(known[1]) + refundOf(entry));
    else walk.refunds.push([original, formatAmount(refundOf(entry))]);
  }
  return faults;
}

/** Between two pages only so many are carried along; what is left out is counted, not hidden. */
function forgetRefunds(walk: Walk, counts: Counts): void {
  if (walk.refunds.length <= carriedRefundsMax) return;
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
