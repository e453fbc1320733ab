import { type KeptKind, keptKindOf } from "../base/kept_kinds.ts";
import type { Committer } from "./commit.ts";
import { commitUnlessMoved } from "./erase.ts";
import type { ExpiringKind } from "./expiry.ts";
import { expiryPrefix } from "./keys.ts";
import { emptyWrite, type Key, type Kv, type Row } from "./kv.ts";
import { removalParts, type Remover, type Round } from "./removal.ts";
import { readOrNull } from "./scan.ts";

/** Rows to remove, if they have not changed since they were read. */
interface Ended {
  kind: KeptKind;
  /** The row that ends, or only the row that says so, where that is out of date. */
  checked: Row;
  deletes: Key[];
}

/** The most rows that one page reads and removes. */
const pageMax = 100;

/**
 * Removes the rows that `withExpiry` has given an end, by that end. Rows that have not ended are
 * not read, except those that were written again with a later end.
 */
export function createExpiryRemover(
  { kv, committer }: { kv: Kv; committer: Committer },
  kinds: readonly ExpiringKind[],
): Remover {
  const byName = new Map(
    kinds.map((kind) => [kind.prefix[0], { ...kind, name: keptKindOf(kind.prefix[0]) }]),
  );
  // Half of what a write can check: writes of requests find a place beside it.
  const rowsPerPage = Math.min(pageMax, Math.floor(kv.limits.checks / 2));
  /**
   * Where the last round stopped, by part: rows of a kind that this version does not know must not
   * be read each time.
   */
  const places = new Map<number, Key>();
  /** The part that has the first turn in a round. */
  let first = 0;

  async function removePart(part: number, round: Round): Promise<void> {
    const prefix = expiryPrefix(part);
    const end = [...prefix, round.now + 1];
    // The clock may have been set back.
    const place = places.get(part);
    let after = place && endOf(place) <= round.now ? place : null;
    let isFromStart = after === null;
    for (;;) {
      const start = after ? [...after, ""] : prefix;
      const ends = await round.turn(async () => {
        const found = await kv.list({ prefix, start, end, limit: rowsPerPage });
        await removePage(found, round);
        return found;
      });
      if (ends === null) return stopAt(part, after, round);
      after = ends.at(-1)?.key ?? null;
      if (ends.length === rowsPerPage) continue;
      places.delete(part);
      if (isFromStart) return;
      // What had ended before the place where the last round stopped.
      after = null;
      isFromStart = true;
    }
  }

  /** Stops because the round is late: the next one goes on from here. */
  async function stopAt(part: number, after: Key | null, round: Round): Promise<void> {
    if (after) places.set(part, after);
    const prefix = expiryPrefix(part);
    const start = after ? [...after, ""] : prefix;
    const [next] = await kv.list({ prefix, start, end: [...prefix, round.now + 1], limit: 1 });
    const kind = next && byName.get(nameOf(next.key));
    if (kind) round.left(kind.name, endOf(next.key));
    else round.unfinished();
  }

  async function removePage(ends: readonly Row[], round: Round): Promise<void> {
    // What a newer version has written, that version removes.
    const known = ends.filter(({ key }) => byName.has(nameOf(key)));
    if (known.length === 0) return;
    const rows = await kv.getMany(known.map(({ key }) => rowKeyOf(key)));
    const ended = known.flatMap((end, at) => endedOf(end, rows[at], round.now));
    await removeAll(ended, round);
  }

  function endedOf(end: Row, row: Row | undefined, now: number): Ended[] {
    const kind = byName.get(nameOf(end.key));
    if (!kind || !row) return [];
    const endsAt = row.value ? readOrNull(row.value, kind.endsAt) : Infinity;
    if (endsAt === null) return [];
    return endsAt <= now
      ? [{ kind: kind.name, checked: row, deletes: [row.key, end.key] }]
      : [{ kind: kind.name, checked: end, deletes: [end.key] }];
  }

  /** Removes rows in one write. Where one of them has changed, each gets a write of its own. */
  async function removeAll(ended: readonly Ended[], round: Round): Promise<void> {
    if (ended.length === 0) return;
    const checks = ended.map(({ checked: { key, version } }) => ({ key, version }));
    const deletes = ended.flatMap(({ deletes }) => deletes);
    const isRemoved = await committer.commit({ ...emptyWrite(), checks, deletes }) !== null;
    const removed = isRemoved ? ended : await removeEach(ended);
    for (const { kind, deletes } of removed) if (deletes.length > 1) round.removed(kind, 1);
  }

  async function removeEach(ended: readonly Ended[]): Promise<Ended[]> {
    const landed = await Promise.all(
      ended.map(({ checked, deletes }) =>
        commitUnlessMoved(committer, checked, { sets: [], deletes })
      ),
    );
    return ended.filter((_, at) => landed[at]);
  }

  return {
    begin(round) {
      first++;
      for (let at = 0; at < removalParts; at++) {
        const part = (first + at) % removalParts;
        if (round.owns(part)) round.add(() => removePart(part, round));
      }
    },
  };
}

// An end's key: `expiry`, its part, the time, and the key of the row that ends.
const endOf = (end: Key) => Number(end[2]);
const rowKeyOf = (end: Key) => end.slice(3);
const nameOf = (end: Key) => String(end[3]);
