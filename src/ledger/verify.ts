import type { Clock } from "../base/clock.ts";
import {
  accountKey,
  accountsPrefix,
  entriesPrefix,
  entryKey,
  holdingKey,
  holdingPrefix,
  idempotencyPrefix,
  movedKey,
  ownAccountsPrefix,
  ownEntriesPrefix,
} from "../store/keys.ts";
import type { Key, Kv, Row } from "../store/kv.ts";
import {
  countRows,
  listAfter,
  readOrNull,
  readPlace,
  type Scan,
  type ScanBudget,
  type ScanCounts,
  scanRows,
  verifyAtRest,
} from "../store/scan.ts";
import type { Entry } from "./entry.ts";
import { type LedgerPlace, ledgerPlaceSchema } from "./schema.ts";
import { continueWalk, type CostsOf, faultsOfEntries, startWalk } from "./verify_entries.ts";
import {
  parseHoldIndexRow,
  parseStoredAccount,
  parseStoredEntry,
  parseStoredIdempotency,
} from "./verify_schemas.ts";
import { formatAmount } from "../base/money.ts";
import { holdsPerAccountMax } from "../base/limits.ts";
import { keyText } from "../store/batch.ts";
import { keyOperation } from "./key_issuer.ts";
import { holdIndexKey } from "./store.ts";

/** Longer than any write can be under way: older ones have landed, or never will. */
const settledMs = 60_000;
const entriesPerRead = 100;

/** What the steps of one page share. */
interface Page {
  place: LedgerPlace;
  budget: ScanBudget;
  checked: ScanCounts;
  faults: string[];
}

/**
 * Verifies all accounts and entries, owner by owner: walks each account's entries from its last
 * one, then counts all stored entries of the owner, since none may exist outside of its accounts.
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

  /**
   * Starts again with an owner when one of their accounts was moved to another name during the
   * walk, which moves entries between accounts. Returns false when none was.
   */
  async function restart({ place }: Page, owner: string): Promise<boolean> {
    const { version: moved } = await kv.get(movedKey(owner));
    if (moved === place.moved) return false;
    const again = { account: null, entry: null, walk: null, chained: 0, listed: 0 };
    Object.assign(place, again, { moved });
    return true;
  }

  /** Continues with one account; false when the owner has no more. */
  async function walkAccount(page: Page, owner: string): Promise<boolean> {
    const { place, budget, checked, faults } = page;
    if (place.walk === null) {
      const after = within(owner, place.account, accountKey);
      const [row] = await listAfter(kv, ownAccountsPrefix(owner), { after, limit: 1 });
      budget.spend(1);
      if (!row) return false;
      place.account = [owner, String(row.key[2])];
      faults.push(...await faultsOfAccount(kv, row, { now: clock.now(), counts: checked }));
      place.walk = readOrNull(row.value, (bytes) => startWalk(row, parseStoredAccount(bytes)));
      if (!place.walk) return true;
    }
    const found = await continueWalk(kv, place.walk, {
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

  /** Continues with the entries; false when the owner has no more. */
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
      faults.push(
        `owner ${owner}: ${listed} entries are stored, but its accounts lead to ${chained}`,
      );
    }
    countRows(checked, "owners");
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

/** An unreadable entry counts as old: it was not written just now. */
function isOlder(entry: Entry | null, cut: number): boolean {
  return entry === null || entry.createdAt <= cut;
}

/** Returns the key of the last one seen, if it belongs to this owner. */
function within(
  owner: string,
  seen: [string, string] | null,
  keyOf: (owner: string, name: string) => Key,
): Key | null {
  return seen?.[0] === owner ? keyOf(...seen) : null;
}

/** The sweep ends expired holds every few seconds, but a large number takes it a while. */
const holdGraceMs = 10 * 60 * 1000;

/** Returns what is wrong with an account's own record, apart from its entries. */
async function faultsOfAccount(
  kv: Kv,
  { key, value }: Row,
  { now, counts }: { now: number; counts: ScanCounts },
): Promise<string[]> {
  const [owner, name] = [String(key[1]), String(key[2])];
  countRows(counts, "accounts");
  const account = readOrNull(value, parseStoredAccount);
  if (!account) return [`account ${owner}/${name} cannot be read`];
  const { balance, held, holds, seq, last } = account;
  const faults: string[] = [];
  const say = (wrong: boolean, what: string) => void (wrong && faults.push(what));
  say(balance < 0n, `has a balance of ${formatAmount(balance)}`);
  say(held > balance, `holds ${formatAmount(held)} of ${formatAmount(balance)}`);
  say(
    (last === null) !== (seq === 0),
    `has ${seq} entries, of which ${last ?? "none"} is the last`,
  );
  say(last === null && balance !== 0n, `has ${formatAmount(balance)}, but no entry`);
  say(holds.length > holdsPerAccountMax, `has ${holds.length} holds`);
  say(new Set(holds.map(({ id }) => id)).size < holds.length, "lists a hold twice");
  for (const { id, amount, used, expiresAt } of holds) {
    const late = `is still there ${Math.round((now - expiresAt) / 1000)} s after its expiry`;
    say(expiresAt < now - holdGraceMs, `has hold ${id}, which ${late}`);
    say(amount < 0n || used < 0n, `has hold ${id}, which is less than zero`);
  }
  countRows(counts, "holds", holds.length);
  if (holds.length > 0) {
    // The row changes in one write with the account.
    faults.push(
      ...await verifyAtRest(kv, { key, counts }, async (row) => {
        const now = readOrNull(row.value, parseStoredAccount);
        const connections = new Set(now?.holds.map((hold) => hold.connectionId));
        const rows = await kv.getMany([...connections].map((id) => holdingKey(owner, name, id)));
        return rows.some((found) => found.value === null)
          ? ["has holds, but is missing in the hold index"]
          : [];
      }),
    );
  }
  return faults.map((fault) => `account ${owner}/${name} ${fault}`);
}

const holdRowsPerRead = 100;

/** Verifies the hold index: each row names the account of its key. */
export function scanHoldIndex({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "holding",
    kv,
    prefix: holdingPrefix,
    rowsPerRead: holdRowsPerRead,
    look(rows, counts) {
      countRows(counts, "holdingRows", rows.length);
      return Promise.resolve(rows.flatMap(faultsOf));
    },
  });
}

function faultsOf({ key, value }: Row): string[] {
  const ref = readOrNull(value, parseHoldIndexRow);
  if (!ref) return [`row ${key.join(" ")} cannot be read`];
  const named = holdIndexKey(ref);
  if (keyText(named) === keyText(key)) return [];
  return [`row ${key.join(" ")} of the hold index names ${named.slice(1).join(" ")}`];
}

const keysPerRead = 100;

/** Verifies all idempotency records: the entry of each exists and carries its key. */
export function scanIdempotency({ kv }: { kv: Kv }): Scan {
  return scanRows({
    name: "idempotency",
    kv,
    prefix: idempotencyPrefix,
    rowsPerRead: keysPerRead,
    async look(rows, counts) {
      const entries = await kv.getMany(rows.map(entryKeyOf));
      countRows(counts, "idempotencyRecords", rows.length);
      const faults: string[] = [];
      for (const [at, row] of rows.entries()) {
        if (faultOf(row, entries[at]) === null) continue;
        // A record that names an erased user moves in one write with its entry's key.
        faults.push(
          ...await verifyAtRest(kv, { key: row.key, counts }, async (again) => {
            const fault = faultOf(again, await kv.get(entryKeyOf(again)));
            return fault === null ? [] : [fault];
          }),
        );
      }
      return faults;
    },
  });
}

function entryKeyOf({ key, value }: Row) {
  const record = readOrNull(value, parseStoredIdempotency);
  return entryKey(record?.owner ?? String(key[1]), record?.activityId ?? "");
}

function faultOf({ key, value }: Row, found: Row | undefined): string | null {
  const [, projectId, operation, name] = key;
  const about = `idempotency key ${name} of a ${operation} in ${projectId}`;
  const record = readOrNull(value, parseStoredIdempotency);
  if (!record) return `${about} cannot be read`;
  const entry = readOrNull(found?.value ?? null, parseStoredEntry);
  if (!entry) {
    const what = found?.value ? "cannot be read" : "is missing";
    return `${about} names entry ${record.activityId}, which ${what}`;
  }
  const carried = `${keyOperation(entry.kind, entry.keyIssuer)} with key ${entry.idempotencyKey}`;
  if (carried === `${operation} with key ${name}`) return null;
  return `${about} names entry ${entry.id}, which is a ${carried}`;
}
