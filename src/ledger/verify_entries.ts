import { entryKinds } from "../base/entry_kinds.ts";
import { accountKey, entryKey, idempotencyKey, refundedKey } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import {
  countRows,
  readOrNull,
  type ScanBudget,
  type ScanCounts,
  verifyAtRest,
} from "../store/scan.ts";
import { absoluteAmount, type Entry, type EntryUsage } from "./entry.ts";
import { faultsOfTransfer } from "./verify_transfers.ts";
import {
  parseEntryLink,
  parseStoredAccount,
  parseStoredEntry,
  parseStoredIdempotency,
  parseStoredRefunded,
} from "./verify_schemas.ts";
import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../base/money.ts";
import type { Account } from "./account.ts";
import { keyOperation } from "./key_issuer.ts";
import type { ChainWalk } from "./schema.ts";
import { isReinstatement } from "./record.ts";

/**
 * Returns what is wrong with some entries of one owner, and the entries; null for unreadable ones.
 */
export async function faultsOfEntries(
  kv: Kv,
  rows: readonly Row[],
  counts: ScanCounts,
): Promise<{ faults: string[]; entries: (Entry | null)[] }> {
  const entries = rows.map(({ value }) => readOrNull(value, parseStoredEntry));
  const readable = entries.flatMap((entry) => entry ?? []);
  const owner = String(rows[0]?.key[1]);
  const faults = rows.filter((_, at) => !entries[at])
    .map(({ key }) => `owner ${owner}: entry ${key[2]} cannot be read`);
  const keyed = readable.filter(isKeyed);
  const records = await kv.getMany(keyed.map((entry) => recordKeyOf(owner, entry)));
  countRows(counts, "entriesWithKey", keyed.length);
  for (const [at, entry] of keyed.entries()) {
    if (faultOfRecord(owner, entry, records[at]) === null) continue;
    // An erased user's keys that name them are removed in one write with their records.
    const judge = (again: Row) => judgeAgain(kv, owner, again);
    faults.push(...await verifyAtRest(kv, { key: entryKey(owner, entry.id), counts }, judge));
  }
  return { faults: [...faults, ...forksAmong(owner, readable)], entries };
}

function isKeyed({ kind, idempotencyKey }: Entry): boolean {
  return idempotencyKey !== null && entryKinds[kind].hasKeyRecord;
}

function recordKeyOf(owner: string, { projectId, kind, idempotencyKey: key, keyIssuer }: Entry) {
  return idempotencyKey(projectId ?? owner, keyOperation(kind, keyIssuer), key ?? "");
}

function faultOfRecord(owner: string, entry: Entry, row: Row | undefined): string | null {
  const record = readOrNull(row?.value ?? null, parseStoredIdempotency);
  const known = record?.activityId ?? "no entry";
  const { id, kind, idempotencyKey: key } = entry;
  if (known === id) return null;
  return `owner ${owner}: entry ${id} has the key ${key}, whose record of a ${kind} names ${known}`;
}

async function judgeAgain(kv: Kv, owner: string, { value }: Row): Promise<string[]> {
  const entry = readOrNull(value, parseStoredEntry);
  if (!entry || !isKeyed(entry)) return [];
  const fault = faultOfRecord(owner, entry, await kv.get(recordKeyOf(owner, entry)));
  return fault === null ? [] : [fault];
}

/** Finds two entries that follow the same one. Where a write was lost, both are near each other. */
function forksAmong(owner: string, entries: readonly Entry[]): string[] {
  const follows = ({ prev, projectId, user }: Entry) => prev ?? `nothing ${projectId} ${user}`;
  const byPrevious = Map.groupBy(entries, follows);
  return [...byPrevious.values()].filter((group) => group.length > 1).map((group) => {
    const ids = group.map(({ id }) => id).join(" and ");
    return `owner ${owner}: entries ${ids} follow the same entry`;
  });
}

interface Step {
  walk: ChainWalk;
  entry: Entry;
  /** The record of how much of the entry has been refunded. */
  total: Uint8Array | null;
}

/** Starts a walk over an account's entries, from its last one to its first. */
export function startWalk({ key }: Row, { last, seq, balance, formerly }: Account): ChainWalk {
  const [owner, name] = [String(key[1]), String(key[2])];
  const refunds: ChainWalk["refunds"] = [];
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
 * Walks to the first entry or the end of the budget. Entries never change, so money may move during
 * the walk. Returns the faults; the walk has ended when its `next` is null. An unreadable entry is
 * skipped: it is reported where all stored entries are listed.
 */
export async function continueWalk(
  kv: Kv,
  walk: ChainWalk,
  { budget, counts, costsOf, onEntry }: {
    budget: ScanBudget;
    counts: ScanCounts;
    costsOf: CostsOf;
    /** Called with null for an unreadable entry. */
    onEntry(entry: Entry | null): void;
  },
): Promise<string[]> {
  const about = `account ${walk.owner}/${walk.name}`;
  const faults: string[] = [];
  const read = () => walk.next === null ? null : kv.get(entryKey(walk.owner, walk.next));
  let row = await read();
  while (row && walk.next !== null && !budget.isUsedUp) {
    if (!row.value) faults.push(`${about}: entry ${walk.next}, number ${walk.seq}, is missing`);
    const entry = readOrNull(row.value, parseStoredEntry);
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
    countRows(counts, "entries");
    const found = [
      ...faultsOfEntry(walk, entry, costsOf),
      ...await faultsOfRefunds(kv, { walk, entry, total: total?.value ?? null }),
      ...await faultsOfTransfer(kv, walk, entry),
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

/**
 * Moves to the previous entry, and continues with the values of this one, so that one fault is
 * reported once.
 */
function goBack(walk: ChainWalk, entry: Entry): void {
  // An entry whose number does not decrease would lead in a circle.
  walk.next = entry.seq > 1 && entry.seq <= walk.seq ? entry.prev : null;
  walk.seq = entry.seq - 1;
  walk.balance = formatAmount(fromDecimal(entry.balanceAfter) - fromDecimal(entry.delta));
}

/**
 * Moves past an entry that is unreadable or missing, as long as it still names the one before it.
 */
function passBy(walk: ChainWalk, { value }: Row, counts: ScanCounts): void {
  const link = readOrNull(value, parseEntryLink);
  walk.next = link && link.seq > 1 && link.seq === walk.seq ? link.prev : null;
  walk.seq--;
  walk.balance = null;
  // It may be a refund.
  forgetRefunds(walk, counts);
}

/** Refunds come after what they refund, so a walk backwards meets all of them first. */
async function faultsOfRefunds(kv: Kv, { walk, entry, total: stored }: Step): Promise<string[]> {
  const at = walk.refunds.findIndex(([id]) => id === entry.id);
  const [met] = at < 0 ? [] : walk.refunds.splice(at, 1);
  const sum = met ? fromDecimal(met[1]) : zero;
  const total = stored ? readOrNull(stored, parseStoredRefunded) : zero;
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

function noteRefund(walk: ChainWalk, entry: Entry): void {
  const original = entry.refundedActivityId;
  if (original === null || walk.forgotten) return;
  const known = walk.refunds.find(([id]) => id === original);
  if (known) known[1] = formatAmount(fromDecimal(known[1]) + refundTotalOf(entry));
  else walk.refunds.push([original, formatAmount(refundTotalOf(entry))]);
}

const carriedRefundsMax = 100;

/**
 * Only so many are carried from one page to the next; the rest is counted as unchecked, not hidden.
 */
function forgetRefunds(walk: ChainWalk, counts: ScanCounts): void {
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

/** Returns what a response may have cost, by the prices and usage that its entry keeps. */
export type CostsOf = (usage: EntryUsage) => readonly Amount[];

/** Returns what is wrong with an entry where the walk has met it, apart from its refunds. */
function faultsOfEntry(walk: ChainWalk, entry: Entry, costsOf: CostsOf): string[] {
  return [...faultsOfPlace(walk, entry), ...faultsOfKind(entry), ...faultsOfCost(entry, costsOf)];
}

function faultsOfPlace(walk: ChainWalk, entry: Entry): string[] {
  const { seq, prev } = entry;
  const [delta, balanceAfter, heldAfter] = [
    fromDecimal(entry.delta),
    fromDecimal(entry.balanceAfter),
    fromDecimal(entry.heldAfter),
  ];
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(what));
  say(entry.id !== walk.next, `is stored as ${walk.next}`);
  say(seq !== walk.seq, `has number ${seq}, but should have ${walk.seq}`);
  say(
    (prev === null) !== (seq === 1),
    `is number ${seq} and names ${prev ?? "none"} as the previous entry`,
  );
  say(
    walk.balance !== null && balanceAfter !== fromDecimal(walk.balance),
    `has balanceAfter ${entry.balanceAfter}, but should have ${walk.balance}`,
  );
  say(
    seq === 1 && delta !== balanceAfter,
    `is the first entry, but its delta ${entry.delta} is not its balanceAfter`,
  );
  say(balanceAfter < 0n, `leaves ${entry.balanceAfter}, less than zero`);
  say(heldAfter < 0n || heldAfter > balanceAfter, `has heldAfter ${entry.heldAfter}`);
  say(
    entry.projectId === undefined && ![walk.name, walk.formerly].includes(entry.user),
    `is of user ${entry.user}, but in the account of ${walk.name}`,
  );
  return faults;
}

function faultsOfKind(entry: Entry): string[] {
  const { kind, usage, refundedActivityId: original } = entry;
  const delta = fromDecimal(entry.delta);
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(`is a ${kind} ${what}`));
  const { direction, hasUsage } = entryKinds[kind];
  say(direction === "credit" && delta < 0n, `of ${entry.delta}`);
  say(direction === "debit" && delta > 0n, `of ${entry.delta}`);
  say(!mayBeShort(entry), `with a shortfall of ${entry.shortfall}`);
  say(kind === "refund" && original === null, "of no entry");
  say(kind !== "refund" && original !== null && !isReinstatement(entry), `of entry ${original}`);
  say(hasUsage !== (usage !== null), usage ? "with a usage" : "without its usage");
  return faults;
}

/** Only a debit can fall short, and a charge that could not be taken whole is refused. */
function mayBeShort(entry: Entry): boolean {
  const shortfall = fromDecimal(entry.shortfall);
  if (isReinstatement(entry)) return shortfall <= 0n;
  const { direction, mayFallShort } = entryKinds[entry.kind];
  const isDebit = direction === "debit" ||
    (direction === "either" && fromDecimal(entry.delta) <= 0n);
  return isDebit && mayFallShort ? shortfall >= 0n : shortfall === 0n;
}

function faultsOfCost({ usage, delta, shortfall }: Entry, costsOf: CostsOf): string[] {
  if (usage === null) return [];
  const due = fromDecimal(shortfall) - fromDecimal(delta);
  const costs = costsOf(usage);
  if (costs.some((cost) => cost === due)) return [];
  const cost = formatAmount(costs[0] ?? zero);
  return [`was due ${formatAmount(due)}, but its tokens cost ${cost}`];
}

/** The walk does not follow an account that has grown by more entries than this since it began. */
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
