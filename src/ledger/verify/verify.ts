import { hash } from "node:crypto";
import { firstIdAt, isId, timeOfId } from "../../base/ids.ts";
import type { Clock } from "../../base/clock.ts";
import type { Committer } from "../../store/commit.ts";
import {
  accountKey,
  accountsPrefix,
  archivedKey,
  entriesPrefix,
  movedKey,
  ownAccountsPrefix,
  ownEntriesPrefix,
  verifiedKey,
} from "../../store/keys.ts";
import type { Key, Kv } from "../../store/kv.ts";
import {
  countRows,
  listAfter,
  readOrNull,
  readPlace,
  type Scan,
  type ScanBudget,
  type ScanCounts,
} from "../../store/scan.ts";
import type { Entry } from "../entry.ts";
import { type ChainWalk, type LedgerPlace, ledgerPlaceSchema } from "../schema.ts";
import { faultsOfAccount } from "./account.ts";
import { continueWalks, entriesAhead, shortEntries, startWalk } from "./chain.ts";
import { forksAmong, readForCount } from "./entries.ts";
import type { CostsOf } from "./entry.ts";
import { addSums, readMark, writeMark } from "./marks.ts";
import { parseStoredAccount } from "./schemas.ts";

/**
 * How old a write must be to have landed, or to be known never to land, in ms: no write is under
 * way longer.
 */
export const settledMs = 60_000;
const entriesPerRead = 250;
/** The most accounts that are walked together, and the most entries that these have in all. */
const accountsTogether = 100;
const entriesTogether = 8_000;
const lanesMax = 3;

/** The part of the ledger that a verification covers. */
export interface LedgerRange {
  /**
   * Whether only entries after the marks of the accounts are verified. Entries are then not
   * counted.
   */
  since: boolean;
  /** The number of this part, from 1 on, where a verification is divided. */
  part: number;
  parts: number;
  /** The only owner to verify; null for all. */
  owner: string | null;
  /** Entries up to this time, in ms, are counted; null for those up to a minute ago. */
  until: number | null;
}

/** The state that the steps of one page share. */
interface Page {
  place: LedgerPlace;
  budget: ScanBudget;
  checked: ScanCounts;
  faults: string[];
  tallies: Record<string, number>;
}

type ScanDeps = { kv: Kv; clock: Clock; committer: Pick<Committer, "commit"> };

/**
 * Verifies accounts and entries, owner by owner: walks each account's entries from its last one,
 * then counts all stored entries of the owner, since none may exist outside of its accounts. A walk
 * without a fault leaves a mark.
 */
export function scanLedger(
  { kv, clock, committer }: ScanDeps,
  costsOf: CostsOf,
  range: LedgerRange,
): Scan {
  const { since, part, parts } = range;
  const start = (): LedgerPlace => ({
    cut: range.until ?? clock.now() - settledMs,
    owner: null,
    done: null,
    moved: null,
    archived: null,
    account: null,
    walk: null,
    listing: null,
    chained: 0,
    listed: 0,
  });

  async function nextOwner({ done }: LedgerPlace): Promise<string | null> {
    if (range.owner !== null) return done === null ? range.owner : null;
    // Just after all keys of the last owner: a new account of theirs would lead back to them.
    const after = (prefixOf: (owner: string) => Key) =>
      done === null ? null : prefixOf(`${done}\0`);
    const [inAccounts, inEntries] = await Promise.all([
      listAfter(kv, accountsPrefix, { after: after(ownAccountsPrefix), limit: 1 }),
      listAfter(kv, entriesPrefix, { after: after(ownEntriesPrefix), limit: 1 }),
    ]);
    const owners = [...inAccounts, ...inEntries].map(({ key }) => String(key[1]));
    return owners.sort()[0] ?? null;
  }

  /** The versions of the rows that change when entries of an owner move or are removed. */
  async function changesOf(owner: string): Promise<Pick<LedgerPlace, "moved" | "archived">> {
    const [moved, archived] = await kv.getMany([movedKey(owner), archivedKey(owner)]);
    return { moved: moved?.version ?? null, archived: archived?.version ?? null };
  }

  /**
   * Starts again with an owner whose entries were moved to another account, or archived, during the
   * walk. Returns false where none were.
   */
  async function restart({ place }: Page, owner: string): Promise<boolean> {
    const changes = await changesOf(owner);
    if (changes.moved === place.moved && changes.archived === place.archived) return false;
    const again = { account: null, walk: null, listing: null, chained: 0, listed: 0 };
    Object.assign(place, again, changes);
    return true;
  }

  /** Reads the next accounts and starts their walks; null at the owner's end. */
  async function startWalks(page: Page, owner: string): Promise<ChainWalk[] | null> {
    const { place, budget, checked, faults } = page;
    const after = place.account === null ? null : accountKey(owner, place.account);
    const rows = await listAfter(kv, ownAccountsPrefix(owner), { after, limit: accountsTogether });
    budget.spend(rows.length + 1);
    if (rows.length === 0) return null;
    const marks = await kv.getMany(rows.map(({ key }) => verifiedKey(owner, String(key[2]))));
    const walks: ChainWalk[] = [];
    let ahead = 0;
    for (const [at, row] of rows.entries()) {
      const name = String(row.key[2]);
      const isMine = partOf(`${owner}\0${name}`, parts) === part;
      const account = isMine ? readOrNull(row.value, parseStoredAccount) : null;
      const mark = marks[at] ?? { key: row.key, value: null, version: null };
      const known = { known: readMark(mark), version: mark.version };
      const walk = account && startWalk({ owner, name, account, mark: known, since });
      const isLong = walk !== null && entriesAhead(walk) > shortEntries;
      if (walk) ahead += entriesAhead(walk);
      if (walks.length > 0 && (isLong || ahead > entriesTogether)) break;
      place.account = name;
      if (isMine) {
        faults.push(...await faultsOfAccount(kv, row, { now: clock.now(), counts: checked }));
      }
      if (walk) walks.push(walk);
      if (isLong) break;
    }
    return walks;
  }

  /** Continues with some accounts; false when the owner has no more. */
  async function walkAccounts(page: Page, owner: string): Promise<boolean> {
    const { place, budget, checked, faults } = page;
    const walks = place.walk === null ? await startWalks(page, owner) : [place.walk];
    if (walks === null) return false;
    const options = {
      budget,
      counts: checked,
      costsOf,
      onEntry: (entry: Entry | null) =>
        void ((entry?.createdAt ?? 0) <= place.cut && place.chained++),
    };
    // While the entries of some are read, those of others are looked at.
    const lanes = [...Map.groupBy(walks, (walk) => walks.indexOf(walk) % lanesMax).values()];
    const found = (await Promise.all(lanes.map((lane) => continueWalks(kv, lane, options)))).flat();
    if (found.length > 0 && await restart(page, owner)) return true;
    faults.push(...found);
    const [unfinished = null] = walks.filter(({ next }) => next !== null);
    place.walk = unfinished;
    await keepMarks(place, walks.filter((walk) => walk !== unfinished));
    return true;
  }

  async function keepMarks({ moved }: LedgerPlace, walks: readonly ChainWalk[]): Promise<void> {
    await Promise.all(walks.map(async (walk) => {
      const { last, lastSeq: seq, lastBalance: balance, mark, hasFaults, isSince } = walk;
      if (last === null || hasFaults || (mark?.last === last && mark.seq === seq)) return;
      const sum = isSince && mark ? addSums(mark.sum, walk.sum) : walk.sum;
      await writeMark(committer, walk, {
        mark: { last, seq, balance, sum, at: clock.now() },
        versions: { mark: walk.markVersion, moved },
      });
    }));
  }

  /** Continues counting the entries of this part; false at their end. */
  async function countEntries(page: Page, owner: string): Promise<boolean> {
    const { place, budget, checked, faults } = page;
    place.listing ??= await startListing(owner, place.cut);
    const { after, end } = place.listing;
    const prefix = ownEntriesPrefix(owner);
    const rows = await kv.list({
      prefix,
      start: [...prefix, after, ""],
      end: [...prefix, end],
      limit: entriesPerRead,
    });
    budget.spend(rows.length + 1);
    const entries = rows.map(readForCount);
    faults.push(...forksAmong(owner, entries.flatMap((entry) => entry ?? [])));
    // An unreadable entry counts as old: it was not written just now.
    place.listed += entries.filter((entry) => (entry?.createdAt ?? 0) <= place.cut).length;
    countRows(checked, "entriesCounted", rows.length);
    const last = rows.at(-1);
    if (last) place.listing.after = String(last.key[2]);
    return rows.length === entriesPerRead;
  }

  /** The entries from the owner's first one on are divided into parts of the same time. */
  async function startListing(owner: string, cut: number) {
    const [first] = await listAfter(kv, ownEntriesPrefix(owner), { after: null, limit: 1 });
    const id = String(first?.key[2]);
    const from = isId("act", id) ? timeOfId(id) : cut;
    // No part is empty, also where all entries are younger than the cut.
    const spanMs = Math.max(cut - from, parts);
    const edge = (n: number) => firstIdAt("act", from + Math.floor(spanMs * n / parts));
    return { after: part === 1 ? "" : edge(part - 1), end: part === parts ? pastAll : edge(part) };
  }

  async function goOn(page: Page, owner: string): Promise<void> {
    const { place, faults, checked, tallies } = page;
    if (place.listing === null && await walkAccounts(page, owner)) return;
    if (!since && await countEntries(page, owner)) return;
    const { listed, chained } = place;
    if (!since && parts > 1 && listed !== chained) tallies[owner] = listed - chained;
    else if (!since && listed !== chained) {
      if (await restart(page, owner)) return;
      faults.push(
        `owner ${owner}: ${listed} entries are stored, but its accounts lead to ${chained}`,
      );
    }
    countRows(checked, "owners");
    const next = { owner: null, done: owner, account: null, listing: null, chained: 0, listed: 0 };
    Object.assign(place, next);
  }

  return {
    name: "ledger",
    async page(given, budget) {
      const place = given === null ? start() : readPlace(ledgerPlaceSchema, given);
      const page: Page = { place, budget, checked: {}, faults: [], tallies: {} };
      const result = () => ({ checked: page.checked, faults: page.faults, tallies: page.tallies });
      do {
        if (place.owner === null) {
          place.owner = await nextOwner(place);
          if (place.owner === null) return { ...result(), next: null };
          Object.assign(place, await changesOf(place.owner));
        }
        await goOn(page, place.owner);
      } while (!budget.isUsedUp);
      return { ...result(), next: { ...place } };
    },
  };
}

/** A text that sorts after every id. */
const pastAll = "~";

/** The part of `parts`, from 1 on, to which a name belongs. */
function partOf(name: string, parts: number): number {
  if (parts === 1) return 1;
  return parseInt(hash("sha256", name, "hex").slice(0, 8), 16) % parts + 1;
}
