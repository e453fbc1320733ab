import type { BudgetChange, Increment, Key, Write } from "./kv.ts";

/** A write that waits for its turn. */
export interface PendingWrite {
  write: Write;
  resolve: (version: string | null) => void;
  reject: (error: unknown) => void;
  /** The write's size, computed once, when it is first compared with others. */
  size?: Size;
}

/** Several pending writes as one. */
export interface Batch {
  write: Write;
  members: PendingWrite[];
}

// Deno KV's limits for one atomic write, less the marker and some space for its own encoding:
// 1,000 mutations, 800 KiB in all, 80 KiB of keys.
const mutationsMax = 950;
const bytesMax = 700 * 1024;
const keyBytesMax = 70 * 1024;
/**
 * The most bytes of a row of sums. Counted for each write, although the writes of a project share a
 * row.
 */
const sumBytesMax = 15 * 1024;

const nothing: ReadonlyMap<string, unknown> = new Map();

/**
 * Takes as many writes from the head of `queue` as fit into one atomic write. A write stays behind
 * when it changes a key that an earlier member changes differently, checks a key that an earlier
 * member changes, or expects another version of a checked key: such writes can never be one. So
 * each member gets the result that it would get alone, after those before it. The keys of
 * `underWay` are being changed by other atomic writes: what concerns them stays behind too. Without
 * any, at least one is taken.
 */
export function openBatch(
  queue: PendingWrite[],
  checksMax: number,
  underWay = nothing,
): Batch {
  const first = queue[0];
  if (queue.length === 1 && first && underWay.size === 0) {
    queue.length = 0;
    return { write: first.write, members: [first] };
  }
  const checks = new Map<string, Write["checks"][number]>();
  const touched = new Map<string, Uint8Array | null>();
  for (const text of underWay.keys()) touched.set(text, null);
  const changed = new Set<string>();
  const batch: Batch = { write: { checks: [], sets: [], deletes: [] }, members: [] };
  const left: PendingWrite[] = [];
  const used = { mutations: 0, bytes: 0, keyBytes: 0 };
  for (const [index, pending] of queue.entries()) {
    const { write } = pending;
    const size = pending.size ??= measure(write);
    const full = used.mutations + size.changes.length + size.sums > mutationsMax ||
      used.bytes + size.bytes > bytesMax || used.keyBytes + size.keyBytes > keyBytesMax ||
      checks.size + changed.size + write.checks.length + size.budgets.length >= checksMax;
    if (full && batch.members.length > 0) {
      left.push(...queue.slice(index));
      break;
    }
    if (!agrees(size, checks) || clashes(size, touched)) {
      // Later writes must not overtake it.
      for (const { text } of size.changes) touched.set(text, null);
      left.push(pending);
      continue;
    }
    used.mutations += size.changes.length + size.sums;
    used.bytes += size.bytes;
    used.keyBytes += size.keyBytes;
    for (const { text, check } of size.checks) checks.set(text, check);
    for (const { text, key, value } of size.changes) {
      if (value === null) batch.write.deletes.push(key);
      else if (!isShared(value, touched.get(text))) batch.write.sets.push({ key, value });
      touched.set(text, value);
    }
    for (const text of size.budgets) changed.add(text);
    batch.members.push(pending);
  }
  batch.write.checks = [...checks.values()];
  gatherSums(batch);
  queue.splice(0, queue.length, ...left);
  return batch;
}

/** Adds up the increments of a batch's members to the same rows, when the batch is sent. */
function gatherSums({ write: whole, members }: Batch): void {
  const additions: Increment[] = [];
  const budgets: BudgetChange[] = [];
  for (const { write } of members) {
    if (write.additions) additions.push(...write.additions);
    if (write.budgets) budgets.push(...write.budgets);
  }
  if (additions.length > 0) whole.additions = additions;
  if (budgets.length > 0) whole.budgets = budgets;
}

/** The keys that a batch changes, as text. */
export function touchedBy({ members }: Batch): string[] {
  return members.flatMap((member) => {
    const { changes, budgets } = member.size ??= measure(member.write);
    return [...changes.map(({ text }) => text), ...budgets];
  });
}

// The most that one write may contain before more is added: what is added still fits then.
const largeSets = 400;
const largeBytes = 350 * 1024;

/** Whether a write has reached half of what fits into one: time to start another. */
export function isLarge({ sets }: Pick<Write, "sets">): boolean {
  return sets.length > largeSets ||
    sets.reduce((bytes, { value }) => bytes + value.length, 0) > largeBytes;
}

/** The properties of a write that decide which other writes it can be combined with. */
interface Size {
  changes: Change[];
  checks: { text: string; check: Write["checks"][number] }[];
  /** How many rows of sums the write adds to. */
  sums: number;
  /** The budgets that the write changes. Several writes of one batch may change the same budget. */
  budgets: readonly string[];
  /** The total size, and the size of the keys, as Deno KV counts them: never an underestimate. */
  bytes: number;
  keyBytes: number;
}

interface Change {
  text: string;
  key: Key;
  /** The new value; null for a delete. */
  value: Uint8Array | null;
}

/**
 * Two writes of the same value to a key can be combined, unless the later one checks it: of two
 * equal claims to a row, one is too late. Anything else stays separate.
 */
function clashes(
  { changes, checks, budgets }: Size,
  touched: Map<string, Uint8Array | null>,
): boolean {
  for (const { text } of checks) {
    if (touched.has(text)) return true;
  }
  // Another atomic write, which is under way, changes the budget.
  for (const text of budgets) if (touched.has(text)) return true;
  for (const { text, value } of changes) {
    const other = touched.get(text);
    if (other === undefined) continue;
    if (value === null || other === null || !sameBytes(value, other)) return true;
  }
  return false;
}

function isShared(value: Uint8Array, other: Uint8Array | null | undefined): boolean {
  return other instanceof Uint8Array && sameBytes(value, other);
}

/** Whether two values are equal, byte for byte. */
export function sameBytes(one: Uint8Array, other: Uint8Array): boolean {
  return one.length === other.length && one.every((byte, at) => byte === other[at]);
}

/** Whether a write expects the same version of each key as the writes gathered so far. */
function agrees({ checks }: Size, gathered: Map<string, Write["checks"][number]>): boolean {
  for (const { text, check } of checks) {
    const known = gathered.get(text);
    if (known && known.version !== check.version) return false;
  }
  return true;
}

/** The most bytes of a budget's row, with its key. */
const budgetBytes = 1024;
const nothingChanged: readonly string[] = [];

function measure({ checks, sets, deletes, additions, budgets: changed }: Write): Size {
  const sums = additions ? 1 : 0;
  const budgets = changed?.map(({ key }) => keyText(key)) ?? nothingChanged;
  const bytes = sums * sumBytesMax + budgets.length * budgetBytes;
  const size: Size = { changes: [], checks: [], sums, budgets, bytes, keyBytes: 0 };
  for (const check of checks) {
    const text = keyText(check.key);
    size.checks.push({ text, check });
    size.bytes += keySize(check.key, text);
  }
  for (const { key, value } of sets) {
    // Most written keys were checked with the same key object.
    const text = size.checks.find(({ check }) => check.key === key)?.text ?? keyText(key);
    const keyBytes = keySize(key, text);
    size.changes.push({ text, key, value });
    size.keyBytes += keyBytes;
    size.bytes += 2 * keyBytes + value.length;
  }
  for (const key of deletes) {
    const text = keyText(key);
    size.changes.push({ text, key, value: null });
    size.bytes += keySize(key, text);
  }
  return size;
}

// deno-lint-ignore no-control-regex -- this is what takes one byte a character, or an escaped two
const narrow = /^[\x00-\x7f]*$/;

/**
 * Returns an upper bound of a key's encoded size: 9 bytes for a number, 2 around each text, and in
 * it 1 byte for an ASCII character, else 3.
 */
function keySize(key: Key, text: string): number {
  return key.length * 9 + text.length * (narrow.test(text) ? 1 : 3);
}

/**
 * Returns a key as text, for comparison. Parts cannot run together: ids and users contain no
 * U+0000.
 */
export function keyText(key: Key): string {
  return key.join("\u0000");
}
