import { storeUnavailable, UnknownOutcome } from "../base/errors.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { CommitMeter } from "./commit_meter.ts";
import { commitMarkerKey } from "./keys.ts";
import type { Key, Kv, Row, Write } from "./kv.ts";

/**
 * The result of a write: its version, or the positions of the checks that failed. No position means
 * that it is not known which.
 */
export type MarkedOutcome = string | readonly number[];

interface MarkedWritesOptions {
  kv: Kv;
  newBatchId: () => string;
  markers: CommitMeter["markers"];
}

const landed = new TextEncoder().encode("landed");
const abandoned = new TextEncoder().encode("abandoned");
/** How often an unknown outcome is queried again. */
const resolveAttemptsMax = 3;

/**
 * Creates a sender of atomic writes with a marker each. A remote store repeats a write whose
 * response was lost, and may then reject what had landed; so after a rejection or an error the
 * marker decides. It throws when the write has not landed and never will, or `UnknownOutcome` when
 * that is not known. One write at a time: each removes the marker of the one before.
 */
export function createMarkedWrites(
  { kv, newBatchId, markers }: MarkedWritesOptions,
): (write: Write) => Promise<MarkedOutcome> {
  let lastMarker: string | null = null;

  /** Returns a version, the failed checks, or null when only a read can tell. */
  async function attempt(marked: Write): Promise<string | readonly number[] | null> {
    if (!kv.atomicOrFailed) return await kv.atomic(marked);
    const outcome = await kv.atomicOrFailed(marked);
    // The marker was there: this is the repetition of a write that landed.
    const isRepeated = typeof outcome !== "string" && outcome.includes(marked.checks.length - 1);
    return isRepeated ? null : outcome;
  }

  async function afterRejection(id: string, { checks }: Write): Promise<MarkedOutcome> {
    const marker = commitMarkerKey(id);
    const rows = await kv.getMany([marker, ...checks.map(({ key }) => key)]).catch(() => null);
    // If it cannot be read, the marker is settled as after an error; a write that has not landed
    // was rejected.
    const [row, ...checked] = rows ?? [];
    if (!row) return await settleUnknown(id, null) ?? [];
    if (hasLanded(row)) return row.version ?? [];
    return checks.flatMap(({ version }, at) => checked[at]?.version === version ? [] : [at]);
  }

  /**
   * Decides after an error: writes the marker itself. If that succeeds, the write's own check on it
   * can never pass again, and `cause` is thrown; if not, the write has landed.
   */
  async function settleUnknown(id: string, cause: unknown): Promise<string | null> {
    const marker = commitMarkerKey(id);
    for (let attempt = 1;; attempt++) {
      try {
        const fenced = await kv.atomic(fenceOf(marker));
        const row = await kv.get(marker);
        if (hasLanded(row)) {
          markers.landed.add();
          return row.version;
        }
        if (fenced !== null || row.value) break;
        if (attempt === resolveAttemptsMax) throw storeUnavailable(cause);
      } catch (error) {
        if (attempt < resolveAttemptsMax) continue;
        markers.unknown.add();
        throw new UnknownOutcome(error);
      }
    }
    markers.not_landed.add();
    if (cause === null) return null;
    throw cause;
  }

  return async (write) => {
    const id = newBatchId();
    const marker = commitMarkerKey(id);
    const deletes = lastMarker ? [...write.deletes, commitMarkerKey(lastMarker)] : write.deletes;
    const marked: Write = {
      checks: [...write.checks, { key: marker, version: null }],
      sets: [...write.sets, { key: marker, value: landed }],
      deletes,
    };
    let asked = false;
    const outcome = await attempt(marked).catch((error) => {
      asked = true;
      return settleUnknown(id, error);
    });
    if (typeof outcome === "string") {
      // What a remote store repeats even later must still meet its marker: the sweep removes it.
      lastMarker = asked ? null : id;
      return outcome;
    }
    return outcome ?? await afterRejection(id, write);
  };
}

function fenceOf(marker: Key): Write {
  return {
    checks: [{ key: marker, version: null }],
    sets: [{ key: marker, value: abandoned }],
    deletes: [],
  };
}

function hasLanded({ value }: Row): boolean {
  return value !== null && decodeUtf8(value) === "landed";
}
