import { idempotencyKey } from "../store/keys.ts";
import type { Kv, Row } from "../store/kv.ts";
import { count, type Counts, readOrNull } from "../store/scan.ts";
import type { Entry } from "./entry.ts";
import { decodeEntry, decodeIdempotency } from "./store.ts";

/** The kinds that an idempotency key of theirs is kept for: by the operation's name. */
const keyedKinds: readonly string[] = ["deposit", "charge", "refund"];

/** What is wrong with some entries of one owner, and when they were made, in ms. */
export async function faultsOfEntries(
  kv: Kv,
  rows: readonly Row[],
  counts: Counts,
): Promise<{ faults: string[]; times: number[] }> {
  const entries = rows.flatMap(({ value }) => readOrNull(value, decodeEntry) ?? []);
  const owner = String(rows[0]?.key[1]);
  const keyed = entries.filter(({ kind, idempotencyKey }) =>
    idempotencyKey !== null && keyedKinds.includes(kind)
  );
  const records = await kv.getMany(
    keyed.map((entry) =>
      idempotencyKey(entry.projectId ?? owner, entry.kind, entry.idempotencyKey ?? "")
    ),
  );
  count(counts, "entriesWithKey", keyed.length);
  const faults = keyed.flatMap((entry, at) => {
    const record = readOrNull(records[at]?.value ?? null, decodeIdempotency);
    const known = record?.activityId ?? "no entry";
    if (known === entry.id) return [];
    const { id, kind } = entry;
    return [
      `owner ${owner}: entry ${id} has the key ${entry.idempotencyKey}, whose record of a ${kind} names ${known}`,
    ];
  });
  return {
    faults: [...faults, ...forksAmong(owner, entries)],
    times: entries.map(({ createdAt }) => createdAt),
  };
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
