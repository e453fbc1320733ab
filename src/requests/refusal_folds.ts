import { Bursts, ownBurst, projectBurst } from "../base/bursts.ts";
import type { Clock } from "../base/clock.ts";
import { keyText } from "../store/batch.ts";
import type { RequestRecord } from "./record.ts";

/** A record of a project. */
interface ProjectRecord {
  projectId: string;
  record: RequestRecord;
}

/**
 * Keeps refused requests from filling the log, since anyone can cause them, under ever new names:
 * after the tenth of a user and reason in a minute, and of a project in a second, further ones are
 * one record with their count.
 */
interface RefusalFolds {
  /** Whether the record is only counted, in one that `takeAll` returns. */
  fold(refused: ProjectRecord): boolean;
  /** Returns the records that stand for several, and begins anew. */
  takeAll(): ProjectRecord[];
}

/** Creates the folds of one process. */
export function createRefusalFolds(clock: Pick<Clock, "elapsed">): RefusalFolds {
  const users = new Bursts(clock, ownBurst);
  const projects = new Bursts(clock, projectBurst);
  const folded = new Map<string, ProjectRecord>();

  function addTo({ projectId, record }: ProjectRecord): void {
    const { user, reason, status, endpoint, key } = record;
    const parts = [projectId, user ?? "", reason ?? "", status, endpoint, key];
    const name = keyText(parts);
    const before = folded.get(name)?.record;
    folded.set(name, { projectId, record: before ? join(before, record) : record });
  }

  return {
    fold({ projectId, record }) {
      if (record.outcome !== "refused") return false;
      const { user, reason } = record;
      if (!users.isFirst(keyText([projectId, user ?? "", reason ?? ""]))) {
        addTo({ projectId, record });
        return true;
      }
      if (projects.isFirst(projectId)) return false;
      addTo({ projectId, record: { ...record, user: null } });
      return true;
    },
    takeAll() {
      const records = [...folded.values()];
      folded.clear();
      return records;
    },
  };
}

/** The later record, with what both have in common, and the count of both. */
function join(before: RequestRecord, later: RequestRecord): RequestRecord {
  return {
    ...later,
    count: before.count + later.count,
    model: before.model === later.model ? later.model : null,
    stream: before.stream && later.stream,
  };
}
