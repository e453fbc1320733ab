import { badCursor, notFound } from "../base/errors.ts";
import { firstIdAt, isId, timeOfId } from "../base/ids.ts";
import { fromBytes } from "../base/json.ts";
import { requireRange } from "../base/moment.ts";
import { containsUtf8 } from "../base/utf8.ts";
import { requestsKey, requestsPrefix } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import type { RequestOutcome, RequestRecord, StoredRequest } from "./record.ts";
import { readRequest } from "./store.ts";

/** Which requests to list. What is absent does not matter. */
interface RequestFilter {
  /** Our own id, or the caller's. */
  id?: string | undefined;
  user?: string | undefined;
  model?: string | undefined;
  key?: string | undefined;
  outcome?: RequestOutcome | undefined;
  reason?: string | undefined;
  status?: number | undefined;
  /** In milliseconds since 1970: from then on, up to that one (exclusive). */
  from?: number | undefined;
  to?: number | undefined;
}

/** Some requests, newest first. */
export interface RequestPage {
  requests: RequestRecord[];
  /** Where each of them is stored, in the same order: for `readRequestAt`. */
  places: string[];
  /** Where to continue; null at the end. */
  nextCursor: string | null;
  /**
   * How far back the page has looked, in milliseconds since 1970, where it stopped before it had
   * found enough: a page reads a bounded part. Null elsewhere.
   */
  searchedTo: number | null;
}

/** A page reads at most so many rows of up to 64 requests: some 50 ms. */
const rowsMax = 160;
const rowsPerRead = 40;
/** A request is written up to an hour after it arrived: responses run that long. */
const latestMs = 60 * 60 * 1000;

/** Lists requests, newest first. Throws 400 for a wrong cursor, and for a range turned round. */
export async function listRequests(
  kv: Kv,
  projectId: string,
  { limit, cursor, filter, rows: most = rowsMax }: {
    limit: number;
    cursor?: string | undefined;
    filter: RequestFilter;
    /** How many rows are read at most, where it should be fewer than usual. */
    rows?: number;
  },
): Promise<RequestPage> {
  requireRange(filter);
  const prefix = requestsPrefix(projectId);
  const start = [...prefix, filter.from === undefined ? "" : firstIdAt("rql", filter.from)];
  let place: Place | null = cursor === undefined ? null : readCursor(cursor);
  const requests: RequestRecord[] = [];
  const places: string[] = [];
  const texts = textsOf(filter);
  for (let read = 0; read < most; read += rowsPerRead) {
    const end = [...prefix, ...endOf(place, filter)];
    const rows = await kv.list({ prefix, start, end, reverse: true, limit: rowsPerRead });
    for (const { key, value } of rows) {
      const row = String(key.at(-1));
      const mayMatch = value && texts.every((text) => containsUtf8(value, text));
      const stored = mayMatch ? fromBytes<StoredRequest[]>(value) : [];
      const last = place?.row === row ? place.before - 1 : stored.length - 1;
      for (let at = last; at >= 0; at--) {
        const record = readRequest(stored[at] ?? []);
        if (!matches(record, filter)) continue;
        requests.push(record);
        places.push(`${row}.${at}`);
        if (requests.length === limit) {
          return { requests, places, nextCursor: `${row}.${at}`, searchedTo: null };
        }
      }
      place = { row, before: 0 };
    }
    if (rows.length < rowsPerRead) return { requests, places, nextCursor: null, searchedTo: null };
  }
  return {
    requests,
    places,
    nextCursor: place && `${place.row}.0`,
    searchedTo: place && timeOfId(place.row),
  };
}

/** Reads one request where a list has found it. Throws 404 where it is no longer stored. */
export async function readRequestAt(
  kv: Kv,
  projectId: string,
  place: string,
): Promise<RequestRecord> {
  const [row = "", at = ""] = place.split(".");
  if (isId("rql", row) && /^\d{1,3}$/.test(at)) {
    const { value } = await kv.get(requestsKey(projectId, row));
    const stored = value && fromBytes<StoredRequest[]>(value)[Number(at)];
    if (stored) return readRequest(stored);
  }
  throw notFound("request");
}

/** Texts that a row must contain to hold a match; other rows are skipped unparsed. */
function textsOf({ id, user, model, key, outcome, reason }: RequestFilter): string[] {
  return [id, user, model, key, outcome, reason].flatMap((text) =>
    text === undefined ? [] : [JSON.stringify(text)]
  );
}

interface Place {
  row: string;
  /** The position in the row; earlier ones are still to be read. */
  before: number;
}

/** The end of the rows to read, exclusive. */
function endOf(place: Place | null, { to }: RequestFilter): string[] {
  if (place) return place.before > 0 ? [place.row, ""] : [place.row];
  return [to === undefined ? "~" : firstIdAt("rql", to + latestMs)];
}

function readCursor(cursor: string): Place {
  const [row = "", before = ""] = cursor.split(".");
  if (!isId("rql", row) || !/^\d{1,3}$/.test(before)) throw badCursor();
  return { row, before: Number(before) };
}

function matches(record: RequestRecord, filter: RequestFilter): boolean {
  const { id, user, model, key, outcome, reason, status, from, to } = filter;
  return (id === undefined || record.id === id || record.requestId === id) &&
    (user === undefined || record.user === user) &&
    (model === undefined || record.model === model) &&
    (key === undefined || record.key === key) &&
    (outcome === undefined || record.outcome === outcome) &&
    (reason === undefined || record.reason === reason) &&
    (status === undefined || record.status === status) &&
    (from === undefined || record.at >= from) &&
    (to === undefined || record.at < to);
}
