import type { Clock } from "../deps.ts";
import {
  accountKey,
  accountsPrefix,
  entriesPrefix,
  entryKey,
  movedKey,
  ownAccountsPrefix,
  ownEntriesPrefix,
} from "../store/keys.ts";
import type { Key, Kv } from "../store/kv.ts";
import {
  type Budget,
  count,
  type Counts,
  listAfter,
  readOrNull,
  readPlace,
  type Scan,
} from "../store/scan.ts";
import type { Entry } from "./entry.ts";
import { type LedgerPlace, ledgerPlaceSchema } from "./schema.ts";
import { faultsOfAccount } from "./verify_account.ts";
import { startWalk, walkOn } from "./verify_chain.ts";
import { faultsOfEntries } from "./verify_entries.ts";
import type { CostsOf } from "./verify_entry.ts";
import { wholeAccount } from "./verify_records.ts";

/** Longer than any write may be under way: what is older has landed, or never will. */
const settledMs = 60_000;
const entriesPerRead = 100;

/** What the parts of one page share. */
interface Page {
  place: LedgerPlace;
  budget: Budget;
  checked: Counts;
  faults: string[];
}

/**
 * All accounts and entries, owner by owner: each account's entries are walked from its last one, and
 * then all entries there are of the owner are counted, since none may be outside of its accounts.
 */
export function scanLedger({ kv, clock }: { kv: Kv; clock: Clock }, costsOf: CostsOf): Scan {
  const start = (): LedgerPlace => ({
    cut: clock.now() - settledMs,
    account: null,
    entry: null,
    owner: null,
    done: null,
    moved: null,
    walk: null,
    chained: 0,
    listed: 0,
  });

  async function nextOwner({ done }: LedgerPlace): Promise<string | null> {
    // Behind all that is of the last one: an account that came meanwhile would lead back to it.
    const after = (prefixOf: (owner: string) => Key) =>
      done === null ? null : prefixOf(`${done}\0`);
    const [inAccounts, inEntries] = await Promise.all([
      listAfter(kv, accountsPrefix, { after: after(ownAccountsPrefix), limit: 1 }),
      listAfter(kv, entriesPrefix, { after: after(ownEntriesPrefix), limit: 1 }),
    ]);
    const owners = [...inAccounts, ...inEntries].map(({ key }) => String(key[1]));
    return owners.sort()[0] ?? null;
  }

  /**
   * Begins with an owner anew when one of their accounts was moved to another name meanwhile, which
   * leads entries from one account to another; false when none was.
   */
  async function restart({ place }: Page, owner: string): Promise<boolean> {
    const { version: moved } = await kv.get(movedKey(owner));
    if (moved === place.moved) return false;
    const again = { account: null, entry: null, walk: null, chained: 0, listed: 0 };
    Object.assign(place, again, { moved });
    return true;
  }

  /** Goes on with one account; false when the owner has no more. */
  async function walkAccount(page: Page, owner: string): Promise<boolean> {
    const { place, budget, checked, faults } = page;
    if (place.walk === null) {
      const after = within(owner, place.account, accountKey);
      const [row] = await listAfter(kv, ownAccountsPrefix(owner), { after, limit: 1 });
      budget.spend(1);
      if (!row) return false;
      place.account = [owner, String(row.key[2])];
      faults.push(...await faultsOfAccount(kv, row, { now: clock.now(), counts: checked }));
      place.walk = readOrNull(row.value, (bytes) => startWalk(row, wholeAccount(bytes)));
      if (!place.walk) return true;
    }
    const found = await walkOn(kv, place.walk, {
      budget,
      counts: checked,
      costsOf,
      onEntry: (entry) => void (isOlder(entry, place.cut) && place.chained++),
    });
    if (found.length > 0 && await restart(page, owner)) return true;
    faults.push(...found);
    if (place.walk.next === null) place.walk = null;
    return true;
  }

  /** Goes on with the entries; false when the owner has no more. */
  async function listEntries(page: Page, owner: string): Promise<boolean> {
    const { place, budget, checked, faults } = page;
    const after = within(owner, place.entry, entryKey);
    const rows = await listAfter(kv, ownEntriesPrefix(owner), { after, limit: entriesPerRead });
    budget.spend(rows.length + 1);
    const found = await faultsOfEntries(kv, rows, checked);
    faults.push(...found.faults);
    place.listed += found.entries.filter((entry) => isOlder(entry, place.cut)).length;
    const last = rows.at(-1);
    if (last) place.entry = [owner, String(last.key[2])];
    return rows.length === entriesPerRead;
  }

  async function goOn(page: Page, owner: string): Promise<void> {
    const { place, faults, checked } = page;
    if (place.listed === 0 && within(owner, place.entry, entryKey) === null) {
      if (await walkAccount(page, owner)) return;
    }
    if (await listEntries(page, owner)) return;
    const { listed, chained } = place;
    if (listed !== chained) {
      if (await restart(page, owner)) return;
      faults.push(`owner ${owner}: ${listed} entries are stored, its accounts lead to ${chained}`);
    }
    count(checked, "owners");
    Object.assign(place, { owner: null, done: owner, chained: 0, listed: 0 });
  }

  return {
    name: "ledger",
    async page(given, budget) {
      const place = given === null ? start() : readPlace(ledgerPlaceSchema, given);
      const page: Page = { place, budget, checked: {}, faults: [] };
      do {
        if (place.owner === null) {
          place.owner = await nextOwner(place);
          if (place.owner === null) return { ...page, next: null };
          place.moved = (await kv.get(movedKey(place.owner))).version;
        }
        await goOn(page, place.owner);
      } while (!budget.isUsedUp);
      return { checked: page.checked, faults: page.faults, next: { ...place } };
    },
  };
}

/** One that cannot be read was not written just now. */
function isOlder(entry: Entry | null, cut: number): boolean {
  return entry === null || entry.createdAt <= cut;
}

/** The key of the last one seen, where it is of this owner. */
function within(
  owner: string,
  seen: [string, string] | null,
  keyOf: (owner: string, name: string) => Key,
): Key | null {
  return seen?.[0] === owner ? keyOf(...seen) : null;
}
