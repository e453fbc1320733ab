import { formatAmount, fromDecimal } from "../../base/money.ts";
import type { Kv, Row } from "../../store/kv.ts";
import { countRows, readOrNull, type ScanBudget, type ScanCounts } from "../../store/scan.ts";
import type { Account } from "../account.ts";
import type { Entry } from "../entry.ts";
import { EntryReader, RefundTotals } from "../entry_reader.ts";
import type { ChainWalk } from "../schema.ts";
import { faultsOfKeys } from "./entries.ts";
import { type CostsOf, faultsOfEntry } from "./entry.ts";
import { addFingerprint, noFingerprints, type VerifiedMark } from "./marks.ts";
import { faultsOfRefunds, forgetRefunds, noteRefund } from "./refunds.ts";
import { parseEntryLink, parseStoredEntry } from "./schemas.ts";
import { faultsOfTransfer } from "./transfers.ts";

/** Where a walk begins, and the mark that is known of the account. */
interface WalkStart {
  owner: string;
  name: string;
  account: Account;
  mark: { known: VerifiedMark | null; version: string | null };
  /** Whether the walk ends at the mark. */
  since: boolean;
}

/** Starts a walk over an account's entries, from its last one to its first, or to its mark. */
export function startWalk({ owner, name, account, mark, since }: WalkStart): ChainWalk {
  const { last, seq, formerly } = account;
  const balance = formatAmount(account.balance);
  return {
    owner,
    name,
    last,
    lastSeq: seq,
    lastBalance: balance,
    next: last,
    seq,
    balance,
    carried: null,
    refunds: [],
    forgotten: false,
    formerly,
    mark: mark.known,
    markVersion: mark.version,
    isSince: since && mark.known !== null,
    sum: noFingerprints,
    sumToMark: noFingerprints,
    hasFaults: false,
  };
}

/** How many entries a walk still has to read, as far as the account tells. */
export function entriesAhead({ seq, mark, isSince }: ChainWalk): number {
  return isSince && mark ? seq - mark.seq + 1 : seq;
}

/** Walks with fewer entries than this go to their ends together. A longer one is walked alone. */
export const shortEntries = 1_000;

interface WalkOptions {
  budget: ScanBudget;
  counts: ScanCounts;
  costsOf: CostsOf;
  /** Called for each stored entry that a walk has met; with null for an unreadable one. */
  onEntry(entry: Entry | null): void;
}

/**
 * Continues walks over accounts of one owner, one entry of each at a time, so that one read serves
 * all. Entries never change, so money may move meanwhile. Short walks go to their ends, a long one
 * to the end of the budget: it has ended when its `next` is null. Returns the faults.
 */
export async function continueWalks(
  kv: Kv,
  walks: readonly ChainWalk[],
  options: WalkOptions,
): Promise<string[]> {
  const owner = walks[0]?.owner ?? "";
  const reader = new EntryReader(kv, owner);
  const totals = new RefundTotals(kv, owner);
  const entries: Entry[] = [];
  const faults: string[] = [];
  const { budget, counts } = options;
  if (walks.some(({ next }) => next !== null)) await totals.load();
  const mayPause = walks.some((walk) => entriesAhead(walk) > shortEntries);
  for (;;) {
    const active = walks.filter(({ next }) => next !== null);
    if (active.length === 0 || (mayPause && budget.isUsedUp)) break;
    const rows = await reader.getMany(active.map(({ next }) => next ?? ""));
    const found = rows.map(({ value }) => readOrNull(value, parseStoredEntry));
    const stored = await totals.of(found);
    budget.spend(2 * active.length);
    for (const [at, walk] of active.entries()) {
      const entry = found[at] ?? null;
      const step = { walk, row: rows[at], entry, total: stored[at] ?? null, totals };
      const wrong = await takeStep(kv, step, options);
      walk.hasFaults ||= wrong.length > 0;
      faults.push(...wrong);
      if (entry) entries.push(entry);
    }
  }
  faults.push(...await faultsOfKeys(kv, { owner, entries }, counts));
  for (const walk of walks) {
    if (walk.next !== null) {
      if (walk.refunds.length > carriedRefundsMax) forgetRefunds(walk, counts);
      continue;
    }
    const wrong = faultsAtEnd(walk);
    walk.hasFaults ||= wrong.length > 0;
    faults.push(...wrong);
  }
  return faults;
}

/** The most refunds that a walk carries from one page to the next. */
const carriedRefundsMax = 100;

interface Step {
  walk: ChainWalk;
  row: Row | undefined;
  entry: Entry | null;
  /** The record of how much of the entry has been refunded. */
  total: Uint8Array | null;
  totals: RefundTotals;
}

/** Looks at the walk's next entry and moves on. An entry that cannot be read is passed by. */
async function takeStep(kv: Kv, step: Step, options: WalkOptions): Promise<string[]> {
  const { walk, row, entry, totals, total } = step;
  const { counts, costsOf, onEntry } = options;
  const about = `account ${walk.owner}/${walk.name}`;
  if (row?.value) onEntry(entry);
  if (!entry) {
    const fault = row?.value
      ? `owner ${walk.owner}: entry ${walk.next} cannot be read`
      : `${about}: entry ${walk.next}, number ${walk.seq}, is missing`;
    passBy(walk, row, counts);
    return [fault];
  }
  countRows(counts, "entries");
  const found = [
    ...faultsOfEntry(walk, entry, costsOf),
    ...faultsAtMark(walk, entry),
    ...await faultsOfRefunds(kv, { walk, entry, total }, totals),
    ...await faultsOfTransfer(kv, walk, entry),
  ];
  noteRefund(walk, entry);
  goBack(walk, entry);
  return found.map((fault) => `${about}: entry ${entry.id} ${fault}`);
}

function faultsAtMark({ mark, carried }: ChainWalk, entry: Entry): string[] {
  if (!mark || carried || entry.seq !== mark.seq) return [];
  const at = new Date(mark.at).toISOString();
  if (entry.id !== mark.last) return [`has number ${mark.seq}, which ${mark.last} had at ${at}`];
  if (fromDecimal(entry.balanceAfter) === fromDecimal(mark.balance)) return [];
  return [`has balanceAfter ${entry.balanceAfter}, but had ${mark.balance} at ${at}`];
}

/**
 * Moves to the previous entry. Continues with the values that this entry states, so that one fault
 * is reported once.
 */
function goBack(walk: ChainWalk, entry: Entry): void {
  const isAtMark = walk.isSince && walk.mark !== null && entry.seq <= walk.mark.seq;
  if (!isAtMark) walk.sum = addFingerprint(walk.sum, entry);
  if (walk.mark && entry.seq <= walk.mark.seq) {
    walk.sumToMark = addFingerprint(walk.sumToMark, entry);
  }
  // An entry whose number does not decrease would lead in a circle.
  walk.next = !isAtMark && entry.seq > 1 && entry.seq <= walk.seq ? entry.prev : null;
  walk.seq = entry.seq - 1;
  if (walk.carried) {
    walk.carried.sum = formatAmount(fromDecimal(walk.carried.sum) - fromDecimal(entry.delta));
    walk.carried.entries--;
    return;
  }
  const before = formatAmount(fromDecimal(entry.balanceAfter) - fromDecimal(entry.delta));
  if (entry.carried) walk.carried = { sum: before, entries: entry.seq - entry.carried.entries };
  walk.balance = entry.carried ? null : before;
}

/**
 * Moves past an entry that is unreadable or missing, as long as it still names the one before it.
 */
function passBy(walk: ChainWalk, row: Row | undefined, counts: ScanCounts): void {
  const link = readOrNull(row?.value ?? null, parseEntryLink);
  walk.next = link && link.seq > 1 && link.seq === walk.seq ? link.prev : null;
  walk.seq--;
  walk.balance = null;
  // It may be a refund.
  forgetRefunds(walk, counts);
}

function faultsAtEnd(walk: ChainWalk): string[] {
  const { mark, carried, isSince } = walk;
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(what));
  if (!isSince) {
    for (const [id] of walk.refunds) {
      // What was archived cannot be refunded any more, but may have been before.
      say(!carried, `: entry ${id} is refunded, but is not an entry of this account`);
    }
  }
  if (carried && !walk.hasFaults) {
    say(
      fromDecimal(carried.sum) !== 0n || carried.entries !== 0,
      ` has ${carried.entries} entries of ${carried.sum} fewer than its carried entry leaves`,
    );
  }
  if (mark && !walk.hasFaults) {
    const at = new Date(mark.at).toISOString();
    say(walk.lastSeq < mark.seq, ` has ${walk.lastSeq} entries, but had ${mark.seq} at ${at}`);
    say(
      !isSince && faults.length === 0 && walk.sumToMark !== mark.sum,
      `: an entry up to number ${mark.seq} has changed since ${at}, when it was verified`,
    );
  }
  return faults.map((fault) => `account ${walk.owner}/${walk.name}${fault}`);
}
