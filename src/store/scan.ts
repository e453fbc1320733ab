import { z } from "zod";
import { badCursor } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { Key, Kv, Row } from "./kv.ts";

/** How many records were checked, by kind. */
export type ScanCounts = Record<string, number>;

/** The result of one page of a scan. */
interface ScanPage {
  checked: ScanCounts;
  /** Sentences that name a record and its fault. */
  faults: string[];
  /** The place to continue from; null at the end. */
  next: Json | null;
  /**
   * For a scan in parts: by owner, how many more entries are stored than accounts lead to, as far
   * as this part has seen. Each owner's sum over all parts must be zero.
   */
  tallies?: Record<string, number>;
}

/** Goes through records of the store, however many, a bounded page at each call. */
export interface Scan {
  name: string;
  /** Scans from `place` on; null is the start. Throws 400 for an invalid place. */
  page(place: Json | null, budget: ScanBudget): Promise<ScanPage>;
}

/** How much one call may still do: a number of reads, and a time. */
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

/** Parses a record; null for an unreadable one, which is reported as a fault. */
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

/** Lists the rows after `after`, or the first ones. */
export function listAfter(
  kv: Kv,
  prefix: Key,
  { after, limit }: { after: Key | null; limit: number },
): Promise<Row[]> {
  // No key is a prefix of another one under the same prefix.
  return kv.list({ prefix, ...(after ? { start: [...after, ""] } : {}), limit });
}

/**
 * Yields all rows under a prefix, page by page, including rows added at the end in the meantime.
 */
export async function* pagesUnder(kv: Kv, prefix: Key, limit: number): AsyncGenerator<Row[]> {
  for (let after: Key | null = null;;) {
    const rows: Row[] = await listAfter(kv, prefix, { after, limit });
    yield rows;
    const last = rows.at(-1);
    if (!last || rows.length < limit) return;
    after = last.key;
  }
}

/** Reads the rows under a prefix again and again, a page at each call: for sweeps. */
interface Rounds {
  /** Whether the next page is the first one of a round. */
  readonly isAtStart: boolean;
  next(): Promise<Row[]>;
}

/** Creates rounds over the rows under a prefix, with pages of at most `limit` rows. */
export function createRounds(kv: Kv, prefix: Key, limit: number): Rounds {
  let after: Key | null = null;
  return {
    get isAtStart() {
      return after === null;
    },
    async next() {
      const rows: Row[] = await listAfter(kv, prefix, { after, limit });
      after = rows.length < limit ? null : rows.at(-1)?.key ?? null;
      return rows;
    },
  };
}

/** The rest of a key after a prefix: the position of a scan of the rows under it. */
const keyPlace = z.array(z.union([z.string(), z.number()])).min(1).max(4)
  .refine((parts) => parts.join("").length <= keyCharsMax);
/** The most characters of a scan's position: no key in the store has more. */
const keyCharsMax = 600;

/** Parses a place. Throws 400 for one that does not match the schema. */
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
  /** Returns the faults of some rows; counts what it checks. */
  look(rows: Row[], counts: ScanCounts): Promise<string[]>;
}

/** Creates a scan of all rows under one prefix. */
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
 * Checks records against others that only change in one write with them, while they may change:
 * the faults of a record count when its version is the same after as before. Those that have
 * changed are judged again; a record that keeps changing is not judged, but it is counted. `judge`
 * returns the faults of each given row.
 */
export async function verifyAllAtRest(
  kv: Kv,
  { keys, counts }: { keys: readonly Key[]; counts: ScanCounts },
  judge: (rows: readonly Row[]) => Promise<string[][]>,
): Promise<string[]> {
  const found: string[] = [];
  let rows = await kv.getMany(keys);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    rows = rows.filter(({ version }) => version !== null);
    if (rows.length === 0) return found;
    const faults = await judge(rows);
    const wrong = rows.flatMap((row, at) => {
      const of = faults[at] ?? [];
      return of.length > 0 ? [{ row, faults: of }] : [];
    });
    if (wrong.length === 0) return found;
    const again = await kv.getMany(wrong.map(({ row }) => row.key));
    for (const [at, { row, faults }] of wrong.entries()) {
      if (again[at]?.version === row.version) found.push(...faults);
    }
    rows = again.filter(({ version }, at) => version !== wrong[at]?.row.version);
  }
  if (rows.length > 0) countRows(counts, "neverAtRest", rows.length);
  return found;
}

/** Checks one record; what is wrong counts only where it stays so when the record is read again. */
export function verifyAtRest(
  kv: Kv,
  { key, counts }: { key: Key; counts: ScanCounts },
  judge: (row: Row) => Promise<string[]>,
): Promise<string[]> {
  const judgeAll = (rows: readonly Row[]) => Promise.all(rows.map(judge));
  return verifyAllAtRest(kv, { keys: [key], counts }, judgeAll);
}

const attemptsMax = 20;
