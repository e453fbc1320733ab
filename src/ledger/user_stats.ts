import { timeOfId } from "../base/ids.ts";
import { fromBytes, toBytes } from "../base/json.ts";
import { type Amount, formatAmount, fromDecimal, toAmount, zero } from "../base/money.ts";
import type { Deps } from "../deps.ts";
import type { Project } from "../projects/schema.ts";
import { decodeProject } from "../projects/project_row.ts";
import {
  movedKey,
  ownAccountsPrefix,
  projectsPrefix,
  userStatsKey,
  userStatsPrefix,
} from "../store/keys.ts";
import { type Eraser, eraseRows } from "../store/erase.ts";
import { emptyWrite, type Key, type Kv } from "../store/kv.ts";
import { listAfter } from "../store/scan.ts";
import { type Account, parseAccount } from "./account.ts";

/** A user of a project, as lists of users show it. */
export interface UserRow {
  user: string;
  balance: Amount;
  held: Amount;
  /** The user's spend in the current month (UTC). */
  spent: Amount;
  /** The number of entries. */
  entries: number;
  /** When the last entry was made, in milliseconds since 1970; null where there is none. */
  lastAt: number | null;
}

/** The orders that users can be listed in. */
export const userOrders = ["recent", "balance", "low", "spent"] as const;
/** `recent`: last active first; `low`: lowest balance first, of those active in 30 days. */
export type UserOrder = typeof userOrders[number];

/** Totals of a project's users, and the first users in each order. */
export interface UserStats {
  /** When the accounts were read, in milliseconds since 1970. */
  at: number;
  users: number;
  /** The sum of the users' balances, which the project owes them. */
  owed: Amount;
  /** How many users had an entry in the last so many days. */
  active: Readonly<Record<ActiveDays, number>>;
  /** How many users active in 30 days have a balance below the project's `lowBalance`. */
  runningLow: number;
  first: Readonly<Record<UserOrder, readonly UserRow[]>>;
}

const activeDays = [1, 7, 30, 90] as const;
/** The periods for which active users are counted. */
type ActiveDays = typeof activeDays[number];

const dayMs = 24 * 60 * 60 * 1000;
/** How many users are listed in each order. */
const listedMax = 100;
/** Up to this many users, all of them are read for each request, which takes some 15 ms. */
export const liveUsersMax = 1_000;
const rowsPerRead = 500;
/** How many accounts one sweep reads. */
const rowsPerSweep = 5_000;

/**
 * Returns the statistics of a project's users: as of now where there are few, else as of the last
 * sweep that has read them all. Null where no sweep has yet, and in the shared mode, where balances
 * belong to wallets.
 */
export async function readUserStats(
  { kv, clock }: Pick<Deps, "kv" | "clock">,
  project: Project,
): Promise<UserStats | null> {
  if (project.mode !== "default") return null;
  const collected = createCollector(project, clock.now());
  let after: Key | null = null;
  for (let read = 0; read <= liveUsersMax; read += rowsPerRead) {
    const rows = await readRows(kv, project.id, after);
    collected.add(rows);
    after = rows.at(-1)?.key ?? null;
    if (rows.length < rowsPerRead || after === null) return collected.stats();
  }
  const { value } = await kv.get(userStatsKey(project.id));
  return value && decode(fromBytes<StoredStats>(value));
}

interface AccountRow {
  key: Key;
  user: string;
  account: Account;
}

async function readRows(kv: Kv, projectId: string, after: Key | null): Promise<AccountRow[]> {
  const prefix = ownAccountsPrefix(projectId);
  const rows = await listAfter(kv, prefix, { after: after && [...after], limit: rowsPerRead });
  return rows.map(({ key, value }) => ({
    key,
    user: String(key[2]),
    account: parseAccount(value),
  }));
}

const compare = {
  recent: (one: UserRow, other: UserRow) => (other.lastAt ?? 0) - (one.lastAt ?? 0),
  balance: (one: UserRow, other: UserRow) => byAmount(other.balance, one.balance),
  low: (one: UserRow, other: UserRow) => byAmount(one.balance, other.balance),
  spent: (one: UserRow, other: UserRow) => byAmount(other.spent, one.spent),
} satisfies Record<UserOrder, (one: UserRow, other: UserRow) => number>;

function byAmount(one: bigint, other: bigint): number {
  return one === other ? 0 : one < other ? -1 : 1;
}

/** Adds up accounts, and keeps the first users of each order. */
function createCollector(project: Project, at: number) {
  const month = new Date(at).toISOString().slice(0, 7);
  const low = project.lowBalance === null ? null : fromDecimal(project.lowBalance);
  const active: Record<ActiveDays, number> = { 1: 0, 7: 0, 30: 0, 90: 0 };
  const first: Record<UserOrder, UserRow[]> = { recent: [], balance: [], low: [], spent: [] };
  let [users, owed, runningLow] = [0, zero, 0];

  function rank(order: UserOrder, row: UserRow): void {
    const ranked = first[order];
    ranked.push(row);
    // Sorted now and then: cheaper than at each row.
    if (ranked.length >= 2 * listedMax) cut(order);
  }

  function cut(order: UserOrder): void {
    first[order] = first[order].sort(compare[order]).slice(0, listedMax);
  }

  function add(rows: readonly AccountRow[]): void {
    for (const { user, account: { balance, held, seq, last, use, closed } } of rows) {
      if (closed) continue;
      const lastAt = last === null ? null : timeOfId(last);
      const spent = use?.month === month ? use.spent : zero;
      const row: UserRow = { user, balance, held, spent, entries: seq, lastAt };
      users++;
      owed = toAmount(owed + balance);
      const age = lastAt === null ? Infinity : at - lastAt;
      for (const days of activeDays) if (age <= days * dayMs) active[days]++;
      rank("recent", row);
      rank("balance", row);
      if (spent > 0n) rank("spent", row);
      if (age > 30 * dayMs) continue;
      rank("low", row);
      if (low !== null && balance < low) runningLow++;
    }
  }

  function stats(): UserStats {
    for (const order of userOrders) cut(order);
    return { at, users, owed, active, runningLow, first };
  }

  return { add, stats };
}

type StoredRow = [
  user: string,
  balance: string,
  held: string,
  spent: string,
  entries: number,
  lastAt: number | null,
];

interface StoredStats extends Omit<UserStats, "owed" | "first"> {
  owed: string;
  first: Record<UserOrder, StoredRow[]>;
}

function encode({ owed, first, ...stats }: UserStats): StoredStats {
  const store = (rows: readonly UserRow[]) =>
    rows.map(({ user, balance, held, spent, entries, lastAt }): StoredRow => [
      user,
      formatAmount(balance),
      formatAmount(held),
      formatAmount(spent),
      entries,
      lastAt,
    ]);
  return { ...stats, owed: formatAmount(owed), first: mapOrders((order) => store(first[order])) };
}

function decode({ owed, first, ...stats }: StoredStats): UserStats {
  const read = (rows: readonly StoredRow[]) =>
    rows.map(([user, balance, held, spent, entries, lastAt]): UserRow => ({
      user,
      balance: fromDecimal(balance),
      held: fromDecimal(held),
      spent: fromDecimal(spent),
      entries,
      lastAt,
    }));
  return { ...stats, owed: fromDecimal(owed), first: mapOrders((order) => read(first[order])) };
}

function mapOrders<T>(map: (order: UserOrder) => T): Record<UserOrder, T> {
  const [recent, balance, low, spent] = userOrders;
  return { recent: map(recent), balance: map(balance), low: map(low), spent: map(spent) };
}

/**
 * Creates a sweep that reads the accounts of projects with many users, a bounded part at each call,
 * and stores their statistics. A project's are as old as one round through all accounts takes.
 */
export function createUserStatsSweep(
  { kv, committer, clock }: Pick<Deps, "kv" | "committer" | "clock">,
): () => Promise<void> {
  let place: { project: Project; key: Key; after: Key | null; moved: string | null } | null = null;
  let collector: ReturnType<typeof createCollector> | null = null;
  let read = 0;

  async function nextProject(): Promise<boolean> {
    const after: Key | null = place ? [...place.key] : null;
    const [row] = await listAfter(kv, projectsPrefix, { after, limit: 1 });
    if (!row?.value) return false;
    const project = decodeProject(row.value);
    const { version: moved } = await kv.get(movedKey(project.id));
    place = { project, key: row.key, after: null, moved };
    collector = createCollector(project, clock.now());
    read = 0;
    return true;
  }

  /** Reads the next accounts of the current project. False once it has no more. */
  async function readOn(): Promise<boolean> {
    if (!place || !collector || place.project.mode !== "default") return false;
    const rows = await readRows(kv, place.project.id, place.after);
    collector.add(rows);
    read += rows.length;
    place.after = rows.at(-1)?.key ?? null;
    if (rows.length === rowsPerRead) return true;
    if (read > liveUsersMax) {
      const value = toBytes(encode(collector.stats()));
      const { project: { id }, moved } = place;
      // What was read may name a user who has been erased since: the next round reads again.
      const checks = [{ key: movedKey(id), version: moved }];
      const sets = [{ key: userStatsKey(id), value }];
      await committer.commit({ ...emptyWrite(), checks, sets });
    }
    return false;
  }

  return async () => {
    for (let rows = 0; rows < rowsPerSweep;) {
      const before = read;
      if (await readOn()) {
        rows += read - before;
        continue;
      }
      rows += 1;
      if (await nextProject()) continue;
      place = null;
      return;
    }
  };
}

/** Deletes the statistics that name a user; the next sweep computes them again. */
export function createUserStatsEraser({ kv, committer }: Pick<Deps, "kv" | "committer">): Eraser {
  return eraseRows({
    name: "userStats",
    kv,
    committer,
    prefix: () => userStatsPrefix,
    rewrite: ({ key }, { projectId }) => key[1] === projectId ? { sets: [], deletes: [key] } : null,
  });
}
