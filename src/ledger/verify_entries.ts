import { entryKey, idempotencyKey } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { count, type Counts, judgeAtRest, readOrNull } from "../store/scan.ts";
import type { Entry } from "./entry.ts";
import { wholeEntry, wholeIdempotency } from "./verify_records.ts";

/** The kinds that an idempotency key of theirs is kept for: by the operation's name. */
const keyedKinds: readonly string[] = ["deposit", "charge", "refund"];

/** What is wrong with some entries of one owner, and the entries: null for those not to be read. */
export async function faultsOfEntries(
  kv: Kv,
  rows: readonly Row[],
  counts: Counts,
): Promise<{ faults: string[]; entries: (Entry | null)[] }> {
  const entries = rows.map(({ value }) => readOrNull(value, wholeEntry));
  const readable = entries.flatMap((entry) => entry ?? []);
  const owner = String(rows[0]?.key[1]);
  const faults = rows.filter((_, at) => !entries[at])
    .map(({ key }) => `owner ${owner}: entry ${key[2]} cannot be read`);
  const keyed = readable.filter(isKeyed);
  const records = await kv.getMany(keyed.map((entry) => recordKeyOf(owner, entry)));
  count(counts, "entriesWithKey", keyed.length);
  for (const [at, entry] of keyed.entries()) {
    if (faultOfRecord(owner, entry, records[at]) === null) continue;
    // A user who is forgotten loses keys that name them, in one write with their records.
    const judge = (again: Row) => judgeAgain(kv, owner, again);
    faults.push(...await judgeAtRest(kv, { key: entryKey(owner, entry.id), counts }, judge));
  }
  return { faults: [...faults, ...forksAmong(owner, readable)], entries };
}

function isKeyed({ kind, idempotencyKey }: Entry): boolean {
  return idempotencyKey !== null && keyedKinds.includes(kind);
}

function recordKeyOf(owner: string, { projectId, kind, idempotencyKey: key }: Entry) {
  return idempotencyKey(projectId ?? owner, kind, key ?? "");
}

function faultOfRecord(owner: string, entry: Entry, row: Row | undefined): string | null {
  const record = readOrNull(row?.value ?? null, wholeIdempotency);
  const known = record?.activityId ?? "no entry";
  const { id, kind, idempotencyKey: key } = entry;
  if (known === id) return null;
  return `owner ${owner}: entry ${id} has the key ${key}, whose record of a ${kind} names ${known}`;
}

async function judgeAgain(kv: Kv, owner: string, { value }: Row): Promise<string[]> {
  const entry = readOrNull(value, wholeEntry);
  if (!entry || !isKeyed(entry)) return [];
  const fault = faultOfRecord(owner, entry, await kv.get(recordKeyOf(owner, entry)));
  return fault === null ? [] : [fault];
}

/** Two entries that follow the same one: where a write was lost, both are near each other. */
function forksAmong(owner: string, entries: readonly Entry[]): string[] {
  const follows = ({ prev, projectId, user }: Entry) => prev ?? `nothing ${projectId} ${user}`;
  const byPrevious = Map.groupBy(entries, follows);
  return [...byPrevious.values()].filter((group) => group.length > 1).map((group) => {
    const ids = group.map(({ id }) => id).join(" and ");
    return `owner ${owner}: entries ${ids} follow the same entry`;
  });
}
