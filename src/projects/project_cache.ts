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
 * Projects and keys as they stood at most a second ago. Good enough to admit a request: every write
 * of money checks the project's version, so nothing is charged by stale settings.
 */
export interface ProjectCache {
  /** Who a hashed API key is, or null. Revoked keys are found too: the caller decides. */
  access(hash: string): Promise<ResolvedApiKey | null>;
  /** The project now, or at most a second ago: then at once. Throws 404. */
  current(projectId: string): Promise<ProjectSnapshot> | ProjectSnapshot;
  /** Reads the project afresh. Throws 404. */
  refresh(projectId: string): Promise<ProjectSnapshot>;
  /** Forgets everything, after a change made here. */
  forget(): void;
}

const entriesMax = 10_000;

/** A directory that remembers what it read for `settingsStaleMs`. */
export function createProjectCache({ kv, clock }: Pick<Deps, "kv" | "clock">): ProjectCache {
  const byHash = new Map<string, { readAt: number; access: Promise<ResolvedApiKey | null> }>();
  const byId = new Map<string, { readAt: number; snapshot: ProjectSnapshot }>();

  /** Keeps one object per version, so that what is computed from it can be kept with it. */
  function remember(snapshot: ProjectSnapshot): ProjectSnapshot {
    const { id } = snapshot.project;
    const known = byId.get(id)?.snapshot;
    const kept = known?.version === snapshot.version ? known : snapshot;
    if (byId.size >= entriesMax) byId.clear();
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
    async access(hash) {
      const known = byHash.get(hash);
      if (known && clock.elapsed() - known.readAt < settingsStaleMs) {
        const access = await known.access;
        // A project read since then in another version may have revoked this very key.
        const { project, version } = access?.snapshot ?? {};
        if (project && byId.get(project.id)?.snapshot.version === version) return access;
      }
      const access = findByHash(kv, hash).then((found) => {
        if (found) return { key: found.key, snapshot: remember(found.snapshot) };
        byHash.delete(hash);
        return null;
      });
      access.catch(() => byHash.delete(hash));
      if (byHash.size >= entriesMax) byHash.clear();
      byHash.set(hash, { readAt: clock.elapsed(), access });
      return await access;
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
