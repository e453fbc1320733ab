import { entryKinds } from "../base/entry_kinds.ts";
import { toBytes } from "../base/json.ts";
import { formatAmount, fromDecimal } from "../base/money.ts";
import { entryKey, forgetJobKey, refundedKey, verifiedKey } from "../store/keys.ts";
import { emptyWrite, type Kv, type Row, type Write } from "../store/kv.ts";
import type { Entry } from "./entry.ts";
import { decodeEntry } from "./store.ts";
import { endedMark } from "./verify/marks.ts";

/** An entry as it is stored. */
export interface StoredEntry {
  entry: Entry;
  version: string | null;
}

/**
 * A part of an account that one write carries forward. It begins at the account's start, or after
 * the `carried` entry.
 */
interface Stretch {
  /** The `carried` entry before the stretch; null at the account's start. */
  carried: StoredEntry | null;
  /** The entries to remove, oldest first; the last one becomes the new `carried` entry. */
  removed: StoredEntry[];
  /** The entries that stay and follow a removed one, with the entry that they follow then. */
  relinked: { stored: StoredEntry; prev: string | null }[];
  /** The last entry that stays; null where none does. */
  lastKept: string | null;
}

/** Reads an entry's row; null where there is none. */
export function readStored({ value, version }: Pick<Row, "value" | "version">): StoredEntry | null {
  return value && { entry: decodeEntry(value), version };
}

/** Whether archiving removes an entry: by its kind, and if it was created before `before`. */
export function isArchivable({ kind, createdAt }: Entry, before: number): boolean {
  return entryKinds[kind].isArchived && kind !== "carried" && createdAt < before;
}

const removedMax = 60;
/** The most entries that stay in one stretch: they are read one after the other. */
const keptMax = 1_000;

/**
 * Returns the write that replaces the oldest of the given entries of one user by one `carried`
 * entry, and which entries it removes. The account's chain stays complete: the new entry takes the
 * id and the number of the last one that is removed. Null where the oldest does not follow what was
 * carried forward before, where the chain is unsound, or while the user is being erased.
 */
export async function carryForward(
  kv: Kv,
  { projectId, user, entries }: {
    projectId: string;
    user: string;
    entries: readonly StoredEntry[];
  },
): Promise<{ write: Write; removed: string[] } | null> {
  const oldestFirst = entries.toSorted((one, other) => one.entry.seq - other.entry.seq);
  const stretch = await findStretch(kv, projectId, oldestFirst);
  const last = stretch?.removed.at(-1);
  if (!stretch || !last) return null;
  const { carried, removed, relinked, lastKept } = stretch;
  const job = forgetJobKey(projectId, user);
  if ((await kv.get(job)).value) return null;
  const keyOf = ({ entry }: StoredEntry) => entryKey(projectId, entry.id);
  const write = emptyWrite();
  const all = [...removed, ...relinked.map(({ stored }) => stored), ...(carried ? [carried] : [])];
  write.checks.push({ key: job, version: null });
  for (const stored of all) write.checks.push({ key: keyOf(stored), version: stored.version });
  const made = carriedEntry(stretch, last.entry);
  write.sets.push({ key: keyOf(last), value: toBytes({ ...made, prev: lastKept }) });
  for (const { stored, prev } of relinked) {
    write.sets.push({ key: keyOf(stored), value: toBytes({ ...stored.entry, prev }) });
  }
  write.sets.push({ key: verifiedKey(projectId, user), value: endedMark });
  for (const stored of [...removed.slice(0, -1), ...(carried ? [carried] : [])]) {
    write.deletes.push(keyOf(stored));
  }
  // They cannot be refunded any more.
  for (const { entry } of removed) write.deletes.push(refundedKey(projectId, entry.id));
  return { write, removed: removed.map(({ entry }) => entry.id) };
}

/**
 * The new `carried` entry: it adds up the removed entries, and those that were carried forward
 * before.
 */
function carriedEntry({ carried, removed }: Stretch, last: Entry): Entry {
  const before = carried ? [carried.entry] : [];
  const all = [...before, ...removed.map(({ entry }) => entry)];
  const sum = (of: (entry: Entry) => string) =>
    formatAmount(all.reduce((total, entry) => total + fromDecimal(of(entry)), 0n));
  const { id, seq, user, balanceAfter, heldAfter, createdAt } = last;
  return {
    id,
    seq,
    prev: null,
    kind: "carried",
    user,
    delta: sum(({ delta }) => delta),
    balanceAfter,
    heldAfter,
    shortfall: sum(({ shortfall }) => shortfall),
    createdAt,
    idempotencyKey: null,
    metadata: null,
    usage: null,
    refundedActivityId: null,
    carried: {
      entries: removed.length + (carried?.entry.carried?.entries ?? 0),
      since: carried?.entry.carried?.since ?? removed[0]?.entry.createdAt ?? createdAt,
    },
  };
}

/** Finds how many entries follow each other with no other archivable entry between them. */
async function findStretch(
  kv: Kv,
  projectId: string,
  oldestFirst: readonly StoredEntry[],
): Promise<Stretch | null> {
  const rowsMax = Math.min(removedMax, Math.max(1, Math.floor((kv.limits.checks - 8) / 2)));
  const stretch: Stretch = { carried: null, removed: [], relinked: [], lastKept: null };
  for (const stored of oldestFirst.slice(0, rowsMax)) {
    const before = await readBack(kv, projectId, stored.entry);
    if (!before || !isSound(before, stored.entry)) break;
    const { reached, kept } = before;
    const isFirst = stretch.removed.length === 0;
    const follows = isFirst
      ? reached === null || reached.entry.kind === "carried"
      : reached?.entry.id === stretch.removed.at(-1)?.entry.id;
    if (!follows) break;
    if (isFirst) {
      stretch.carried = reached;
      stretch.lastKept = reached?.entry.prev ?? null;
    }
    const [first] = kept;
    if (first && first.entry.prev !== stretch.lastKept) {
      stretch.relinked.push({ stored: first, prev: stretch.lastKept });
    }
    stretch.lastKept = kept.at(-1)?.entry.id ?? stretch.lastKept;
    stretch.removed.push(stored);
  }
  return stretch.removed.length > 0 ? stretch : null;
}

interface Before {
  /**
   * The nearest earlier entry that could be archived, or stands for archived ones; null at the
   * account's start.
   */
  reached: StoredEntry | null;
  /** The entries after `reached` that have to stay, oldest first. */
  kept: StoredEntry[];
}

/**
 * Reads back to the nearest earlier entry that could be archived. Null where an entry is missing.
 */
async function readBack(kv: Kv, projectId: string, from: Entry): Promise<Before | null> {
  const kept: StoredEntry[] = [];
  for (let next = from.prev; next !== null;) {
    const stored = readStored(await kv.get(entryKey(projectId, next)));
    if (!stored || kept.length >= keptMax) return null;
    if (entryKinds[stored.entry.kind].isArchived) return { reached: stored, kept };
    kept.unshift(stored);
    next = stored.entry.prev;
  }
  return { reached: null, kept };
}

/** Whether balances and numbers continue up to an entry: a fault must not be archived away. */
function isSound({ reached, kept }: Before, last: Entry): boolean {
  let balance = reached ? fromDecimal(reached.entry.balanceAfter) : 0n;
  let seq = reached?.entry.seq ?? 0;
  for (const { delta, balanceAfter, seq: number } of [...kept.map(({ entry }) => entry), last]) {
    balance += fromDecimal(delta);
    seq++;
    if (fromDecimal(balanceAfter) !== balance || number !== seq) return false;
  }
  return true;
}
