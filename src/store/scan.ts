import { z } from "zod";
import { badCursor } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { Key, Kv, Row } from "./kv.ts";

/** What was looked at, by its name, and how often. */
export type ScanCounts = Record<string, number>;

/** What one page of a scan has found. */
export interface ScanPage {
  checked: ScanCounts;
  /** Sentences that name the record and what is wrong with it. */
  faults: string[];
  /** Where to go on; null at the end. */
  next: Json | null;
}

/** Goes through records of the store, however many, a bounded page at each call. */
export interface Scan {
  name: string;
  /** From `place` on, null being the start. Throws 400 for a place that it never gave. */
  page(place: Json | null, budget: ScanBudget): Promise<ScanPage>;
}

/** How much one call may still do: reads count, and time. */
export class ScanBudget {
  #readsLeft: number;
  readonly #isLate: () => boolean;

  constructor(readsMax: number, isLate: () => boolean) {
    this.#readsLeft = readsMax;
    this.#isLate = isLate;
  }

  spend(reads: number): void {
    this.#readsLeft -= reads;
  }

  get isUsedUp(): boolean {
    return this.#readsLeft <= 0 || this.#isLate();
  }
}

/** What a record says; null for one that cannot be read, which is a fault like any other. */
export function readOrNull<T>(
  value: Uint8Array | null,
  decode: (bytes: Uint8Array) => T,
): T | null {
  try {
    return value && decode(value);
  } catch {
    return null;
  }
}

/** Adds to a count. */
export function countRows(counts: ScanCounts, what: string, by = 1): void {
  counts[what] = (counts[what] ?? 0) + by;
}

/** The rows after `after`, or the first ones. */
export function listAfter(
  kv: Kv,
  prefix: Key,
  { after, limit }: { after: Key | null; limit: number },
): Promise<Row[]> {
  // No key of ours is the beginning of another one under the same prefix.
  return kv.list({ prefix, ...(after ? { start: [...after, ""] } : {}), limit });
}

/** All rows under a prefix, so many at each read: what is added meanwhile at the end comes too. */
export async function* pagesUnder(kv: Kv, prefix: Key, limit: number): AsyncGenerator<Row[]> {
  for (let after: Key | null = null;;) {
    const rows: Row[] = await listAfter(kv, prefix, { after, limit });
    yield rows;
    const last = rows.at(-1);
    if (!last || rows.length < limit) return;
    after = last.key;
  }
}

/** The rest of a key after a prefix: where a scan of the rows under it goes on. */
const keyPlace = z.array(z.union([z.string(), z.number()])).min(1).max(4)
  .refine((parts) => parts.join("").length <= keyCharsMax);
/** No key of ours is longer, and none that is could be read. */
const keyCharsMax = 600;

/** Reads a place. Throws 400 for one that does not fit the schema. */
export function readPlace<S extends z.ZodType>(schema: S, place: Json): z.output<S> {
  const read = schema.safeParse(place);
  if (read.success) return read.data;
  throw badCursor();
}

interface RowScan {
  name: string;
  kv: Kv;
  prefix: Key;
  rowsPerRead: number;
  /** The faults of some rows; counts what it looks at. */
  look(rows: Row[], counts: ScanCounts): Promise<string[]>;
}

/** A scan of all rows under one prefix. */
export function scanRows({ name, kv, prefix, rowsPerRead, look }: RowScan): Scan {
  return {
    name,
    async page(place, budget) {
      const checked: ScanCounts = {};
      const faults: string[] = [];
      let after = place === null ? null : [...prefix, ...readPlace(keyPlace, place)];
      do {
        const rows = await listAfter(kv, prefix, { after, limit: rowsPerRead });
        budget.spend(rows.length + 1);
        faults.push(...await look(rows, checked));
        const last = rows.at(-1);
        if (!last || rows.length < rowsPerRead) return { checked, faults, next: null };
        after = [...last.key];
      } while (!budget.isUsedUp);
      return { checked, faults, next: after.slice(prefix.length) };
    },
  };
}

/**
 * Judges a record by others that only ever change in one write with it, while they may change: the
 * verdict counts when the record's version is the same after as before. Of one that never rests
 * nothing is said, but it is counted.
 */
export async function verifyAtRest(
  kv: Kv,
  { key, counts }: { key: Key; counts: ScanCounts },
  judge: (row: Row) => Promise<string[]>,
): Promise<string[]> {
  let row = await kv.get(key);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    if (row.version === null) return [];
    const faults = await judge(row);
    if (faults.length === 0) return [];
    const again = await kv.get(key);
    if (again.version === row.version) return faults;
    row = again;
  }
  countRows(counts, "neverAtRest");
  return [];
}

const attemptsMax = 20;
