import { firstIdAt, type IdKind } from "../base/ids.ts";
import type { JsonObject } from "../base/json.ts";
import type { Key, Kv, Row } from "./kv.ts";

/** Selects the records to list. */
export interface ListingQuery {
  /** The position of the last known record; null for the first page. */
  after: string | null;
  /** Limits the time of creation: from this millisecond on, up to that one (exclusive). */
  from: number | null;
  to: number | null;
}

/** Some records, possibly none, and the position after them; null at the end. */
export interface ListingPage {
  records: JsonObject[];
  next: string | null;
}

/** Lists all records of one kind of a project, in an order that never changes, page by page. */
export type Listing = (query: ListingQuery) => Promise<ListingPage>;

/** How many rows one page reads: few enough that a listing at full speed delays no one. */
export const rowsPerPage = 200;

// An entry's id may be much older than the entry: a response runs for up to an hour, and one that
// died with the machine is charged when the machine is back.
const earlierMs = 7 * 24 * 60 * 60 * 1000;
/** How much later than now an id may be, in ms: a clock may have been set back. */
const laterMs = 60 * 60 * 1000;

/** Lists the rows under a prefix whose keys end in an id, in order of time. */
export async function listByTime(
  kv: Kv,
  { prefix, kind, read }: {
    prefix: Key;
    kind: IdKind;
    read(row: Row): { createdAt: number; record: JsonObject } | null;
  },
  { after, from, to }: ListingQuery,
): Promise<ListingPage> {
  const first = from === null ? "" : firstIdAt(kind, from - earlierMs);
  const end = to === null ? pastAll : firstIdAt(kind, to + laterMs);
  const known = after === null || after < first ? null : after;
  // The store rejects a range that ends before it starts.
  if ((known ?? first) >= end) return { records: [], next: null };
  const rows = await kv.list({
    prefix,
    start: known === null ? [...prefix, first] : [...prefix, known, ""],
    end: [...prefix, end],
    limit: rowsPerPage,
  });
  const records = rows.flatMap((row) => {
    const found = read(row);
    if (!found) return [];
    const { createdAt, record } = found;
    return (from ?? 0) <= createdAt && createdAt < (to ?? Infinity) ? [record] : [];
  });
  const last = rows.at(-1);
  return { records, next: last && rows.length === rowsPerPage ? String(last.key.at(-1)) : null };
}

/** A text that sorts after every id. */
const pastAll = "~";
