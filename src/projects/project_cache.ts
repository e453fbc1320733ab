import { BoundedMap } from "../base/bounded_map.ts";
import { notFound } from "../base/errors.ts";
import { settingsStaleMs } from "../base/limits.ts";
import type { Deps } from "../deps.ts";
import type { ApiKey } from "./schema.ts";
import { findByHash, type ProjectSnapshot, readProject } from "./store.ts";

export type { ProjectSnapshot } from "./store.ts";

/** A key and the project that it opens. */
export interface ResolvedApiKey {
  key: ApiKey;
  snapshot: ProjectSnapshot;
}

/**
 * Projects and keys as of at most a second ago. That is enough to admit a request: every write of
 * money checks the project's version, so nothing is charged by stale settings.
 */
export interface ProjectCache {
  /**
   * Returns the key with this hash, and its project, or null; without a promise where both were
   * read within the last second. Includes revoked keys: the caller decides.
   */
  access(hash: string): Promise<ResolvedApiKey | null> | ResolvedApiKey | null;
  /**
   * Returns the project as of now, or of at most a second ago, and then without a promise. Throws
   * 404.
   */
  current(projectId: string): Promise<ProjectSnapshot> | ProjectSnapshot;
  /** Reads the project again. Throws 404. */
  refresh(projectId: string): Promise<ProjectSnapshot>;
  /** Drops everything, after a change made in this process. */
  forget(): void;
}

const entriesMax = 10_000;

/** A key that is being read, or was: then it is `found`. */
interface Access {
  readAt: number;
  reading: Promise<ResolvedApiKey | null>;
  found: ResolvedApiKey | null;
}

/** Creates a cache that keeps what it read for `settingsStaleMs`. */
export function createProjectCache({ kv, clock }: Pick<Deps, "kv" | "clock">): ProjectCache {
  const byHash = new BoundedMap<string, Access>(entriesMax);
  const byId = new BoundedMap<string, { readAt: number; snapshot: ProjectSnapshot }>(entriesMax);

  /** Keeps one object per version, so that values computed from it can be cached with it. */
  function remember(snapshot: ProjectSnapshot): ProjectSnapshot {
    const { id } = snapshot.project;
    const known = byId.get(id)?.snapshot;
    const kept = known?.version === snapshot.version ? known : snapshot;
    byId.set(id, { readAt: clock.elapsed(), snapshot: kept });
    return kept;
  }

  async function refresh(projectId: string): Promise<ProjectSnapshot> {
    const snapshot = await readProject(kv, projectId);
    if (!snapshot) throw notFound("project");
    return remember(snapshot);
  }

  return {
    refresh,
    access(hash) {
      const known = byHash.get(hash);
      if (known && clock.elapsed() - known.readAt < settingsStaleMs) {
        if (known.found === null) return known.reading;
        // A version of the project read since then may have revoked this key.
        const { project, version } = known.found.snapshot;
        if (byId.get(project.id)?.snapshot.version === version) return known.found;
      }
      const reading = findByHash(kv, hash).then((found) => {
        if (found) return access.found = { key: found.key, snapshot: remember(found.snapshot) };
        byHash.delete(hash);
        return null;
      });
      const access: Access = { readAt: clock.elapsed(), reading, found: null };
      reading.catch(() => byHash.delete(hash));
      byHash.set(hash, access);
      return reading;
    },
    current(projectId) {
      const known = byId.get(projectId);
      const isFresh = known && clock.elapsed() - known.readAt < settingsStaleMs;
      return isFresh ? known.snapshot : refresh(projectId);
    },
    forget() {
      byHash.clear();
      byId.clear();
    },
  };
}
