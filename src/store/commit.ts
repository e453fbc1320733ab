import { ApiError, storeUnavailable } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { Deps } from "../deps.ts";
import { type Batch, keyText, openBatch, type PendingWrite } from "./batch.ts";
import { commitMarkerKey, commitMarkersPrefix } from "./keys.ts";
import { asStoreFault, emptyWrite, type Increment, type Kv, type Write } from "./kv.ts";
import { added, createSums } from "./sums.ts";

/** The result of a write: its version, or null when a check failed and nothing was written. */
export type CommitResult = string | null;

/** Commits writes, combining those that arrive during a commit. */
export interface Committer {
  /**
   * Writes all of `write` or nothing. Null: a check failed. Throws `ApiError` 503 when the store
   * gives no answer; the write has then either landed or never will.
   */
  commit(write: Write): Promise<CommitResult>;
  /** Adds to a sum without a write of its own: it goes with the next write, or with `flush`. */
  count(addition: Increment): void;
  /** Writes the increments that are only counted so far, if any. Throws as `commit` does. */
  flush(): Promise<void>;
  /** Resolves when nothing is pending or under way. */
  idle(): Promise<void>;
}

interface CommitterOptions {
  kv: Kv;
  newBatchId: () => string;
  checksMax: number;
  elapsed: Deps["clock"]["elapsed"];
  meter: Pick<
    Deps["metrics"],
    "commits" | "commitTime" | "commitWrites" | "retriedSingly" | "markers"
  >;
}

const landed = new TextEncoder().encode("landed");
const abandoned = new TextEncoder().encode("abandoned");
/** How often an unknown outcome is queried again. */
const resolveAttemptsMax = 3;
/** The most counted increments that go with one write, which reserves space for that many rows. */
const ridingMax = 5;

/**
 * The group commit. One atomic write is under way at a time, and what arrives during it goes into
 * the next: an idle service adds no delay, and a busy one pays one fsync for many requests. Two at
 * a time, for the same 64 callers, are smaller, cost more, and complete no more requests a second.
 * A batch that fails a check is retried member by member: one stale member does not affect the
 * others.
 */
export function createCommitter(options: CommitterOptions): Committer {
  const { kv, newBatchId, checksMax, elapsed, meter } = options;
  const queue: PendingWrite[] = [];
  let running: Promise<void> | null = null;
  let lastMarker: string | null = null;
  const sums = createSums(newBatchId);
  const counted = new Map<string, Increment>();

  async function drain(): Promise<void> {
    while (queue.length > 0) {
      const batch = openBatch(queue, checksMax);
      await commitBatch(batch);
    }
    running = null;
  }

  async function commitBatch({ write, members }: Batch): Promise<void> {
    meter.commitWrites.observe(members.length);
    const outcome = await send(write).catch((error: unknown) => ({ error }));
    const failed = typeof outcome === "object" && outcome !== null ? outcome : null;
    if (!failed && (outcome !== null || members.length === 1)) {
      return members.forEach((member) => member.resolve(outcome as CommitResult));
    }
    // A store that does not answer is not called again for each member.
    if (failed && (members.length === 1 || failed.error instanceof ApiError)) {
      return members.forEach((member) => member.reject(asStoreFault(failed.error)));
    }
    for (const member of members) {
      meter.retriedSingly.add();
      await send(member.write)
        .then(member.resolve, (error) => member.reject(asStoreFault(error)));
    }
  }

  /** Sends one atomic write with the sums that it adds to, and the increments counted so far. */
  async function send(write: Write): Promise<CommitResult> {
    const riding = takeCounted();
    const additions = [...write.additions ?? [], ...riding];
    if (additions.length === 0) return await sendTimed(write);
    const { sets, committed } = sums.after(additions);
    try {
      const version = await sendTimed({ ...write, sets: [...write.sets, ...sets] });
      if (version === null) riding.forEach(count);
      else committed();
      return version;
    } catch (error) {
      riding.forEach(count);
      sums.abandon(additions);
      throw error;
    }
  }

  function takeCounted(): Increment[] {
    const taken = [...counted].slice(0, ridingMax);
    for (const [name] of taken) counted.delete(name);
    return taken.map(([, addition]) => addition);
  }

  function count({ key, field, values }: Increment): void {
    const name = keyText([...key, field]);
    const before = counted.get(name)?.values;
    counted.set(name, { key, field, values: before ? added(before, values) : values });
  }

  async function sendTimed(write: Write): Promise<CommitResult> {
    const startedAt = elapsed();
    try {
      const version = await sendMarked(write);
      meter.commits[version === null ? "refused" : "landed"].add();
      return version;
    } catch (error) {
      meter.commits.failed.add();
      throw error;
    } finally {
      meter.commitTime.observeMs(elapsed() - startedAt);
    }
  }

  /**
   * Sends one atomic write with a marker. A remote store repeats a write whose response was lost,
   * and may then reject what had landed; so after a rejection or an error the marker decides.
   */
  async function sendMarked(write: Write): Promise<CommitResult> {
    const id = newBatchId();
    const marker = commitMarkerKey(id);
    const deletes = lastMarker ? [...write.deletes, commitMarkerKey(lastMarker)] : write.deletes;
    const marked: Write = {
      checks: [...write.checks, { key: marker, version: null }],
      sets: [...write.sets, { key: marker, value: landed }],
      deletes,
    };
    let asked = false;
    const version = await kv.atomic(marked).catch((error) => {
      asked = true;
      return settleUnknown(id, error);
    });
    if (version !== null) {
      // What a remote store repeats even later must still meet its marker: the sweep removes it.
      lastMarker = asked ? null : id;
      return version;
    }
    const row = await kv.get(marker).catch(() => null);
    // If it cannot be read, the marker is settled as after an error; a write that has not landed
    // was rejected.
    if (!row) return await settleUnknown(id, null);
    return row.value && decodeUtf8(row.value) === "landed" ? row.version : null;
  }

  /**
   * After an error: writes the marker itself. If that succeeds, the write's own check on it can
   * never pass again, and `cause` is thrown; if not, the write has landed.
   */
  async function settleUnknown(id: string, cause: unknown): Promise<CommitResult> {
    const marker = commitMarkerKey(id);
    for (let attempt = 1;; attempt++) {
      const fence = {
        checks: [{ key: marker, version: null }],
        sets: [{ key: marker, value: abandoned }],
        deletes: [],
      };
      try {
        const fenced = await kv.atomic(fence);
        const row = await kv.get(marker);
        if (row.value && decodeUtf8(row.value) === "landed") {
          meter.markers.landed.add();
          return row.version;
        }
        if (fenced !== null || row.value) break;
        if (attempt === resolveAttemptsMax) throw storeUnavailable(cause);
      } catch (error) {
        if (attempt < resolveAttemptsMax) continue;
        meter.markers.unknown.add();
        throw storeUnavailable(error);
      }
    }
    meter.markers.not_landed.add();
    if (cause === null) return null;
    throw cause;
  }

  function commit(write: Write): Promise<CommitResult> {
    return new Promise((resolve, reject) => {
      queue.push({ write, resolve, reject });
      running ??= drain();
    });
  }

  return {
    commit,
    count,
    async flush() {
      while (counted.size > 0) await commit(emptyWrite());
    },
    async idle() {
      while (running) await running;
    },
  };
}

const markersPerSweep = 200;
/** Far longer than any write can be under way: no marker is needed any more. */
const markerLifetimeMs = 10 * 60 * 1000;

/**
 * Removes commit markers that dead processes left behind; a bounded part at each call. A marker's
 * age is how long this process has seen it, by a clock that no one sets: removing one too early
 * would let a write that landed be reported as failed.
 */
export function createMarkerSweep(
  { kv, clock, metrics }: Pick<Deps, "clock" | "metrics"> & { kv: Kv },
): () => Promise<void> {
  let seenSince = new Map<string, number>();
  return async () => {
    const now = clock.elapsed();
    const rows = await kv.list({ prefix: commitMarkersPrefix, limit: markersPerSweep });
    seenSince = new Map(rows.map(({ key }) => {
      const id = String(key[1]);
      return [id, seenSince.get(id) ?? now];
    }));
    const old = rows.filter(({ key }) =>
      now - (seenSince.get(String(key[1])) ?? now) > markerLifetimeMs
    );
    if (old.length === 0) return;
    await kv.atomic({ checks: [], sets: [], deletes: old.map(({ key }) => key) });
    metrics.repairs.commit_marker.add(old.length);
  };
}
