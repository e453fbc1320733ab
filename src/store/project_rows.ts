import type { Clock } from "../base/clock.ts";
import type { KeptKind } from "../base/kept_kinds.ts";
import { keyText } from "./batch.ts";
import { projectsPrefix } from "./keys.ts";
import type { Key, Kv, Row } from "./kv.ts";
import { partOf, type Remover, type Round } from "./removal.ts";
import { listAfter } from "./scan.ts";

/** Rows of projects that are kept in order of time, and so need no end of their own. */
export interface ProjectRows {
  kind: KeptKind;
  /** Removes the oldest rows of a project that have ended by `now`, at most a page of them. */
  removePage(project: ProjectRow, now: number): Promise<RemovedPage>;
}

/** A project as it is stored. */
interface ProjectRow {
  key: Key;
  value: Uint8Array;
}

/** The rows that one page has removed. */
interface RemovedPage {
  /** How many rows were removed. */
  count: number;
  isMore: boolean;
  /**
   * When the last removed row ended, in milliseconds since 1970: rows that are left ended no
   * earlier.
   */
  endedAt: number;
}

/** A piece of work that waits for its turn. */
interface Task {
  name: string;
  kind: KeptKind | null;
  projectKey: Key | null;
  /**
   * When the last row that this task removed had ended, in ms since 1970; null where it has removed
   * none.
   */
  endedAt: number | null;
  /** Does one page; returns whether there is more. */
  run(round: Round): Promise<boolean>;
}

const projectsPerRead = 20;
/** How much longer the pause between two looks at all projects is than the looks themselves. */
const pauseRatio = 9;

/**
 * Removes rows that have ended from project after project. A project with more than a page of them
 * waits for its next turn behind the others, so that neither a busy project waits for many quiet
 * ones, nor these for it.
 */
export function createProjectRemover(
  { kv, clock }: { kv: Kv; clock: Pick<Clock, "elapsed"> },
  kinds: readonly ProjectRows[],
): Remover {
  /** The tasks that wait for a turn. Those that a late round leaves are done by the next one. */
  const queue: Task[] = [];
  /** The names of the tasks that wait or run. */
  const known = new Set<string>();
  let workers = 0;
  let lookedAt = -Infinity;
  let tookMs = 0;

  function add(task: Task): void {
    if (known.has(task.name)) return;
    known.add(task.name);
    queue.push(task);
  }

  function removalOf(rows: ProjectRows, projectKey: Key): Task {
    const task: Task = {
      // Several may be of one kind, such as those of each status.
      name: `${kinds.indexOf(rows)} ${keyText(projectKey)}`,
      kind: rows.kind,
      projectKey,
      endedAt: null,
      async run(round) {
        const { key, value } = await kv.get(projectKey);
        if (!value) return false;
        const { count, isMore, endedAt } = await rows.removePage({ key, value }, round.now);
        round.removed(rows.kind, count);
        if (isMore) task.endedAt = endedAt;
        return isMore;
      },
    };
    return task;
  }

  /** Looks at all projects, some at each turn, behind what it has found with the last one. */
  function looks(): Task {
    let after: Key | null = null;
    return {
      ...{ name: "looks", kind: null, projectKey: null, endedAt: null },
      async run(round) {
        const limit = projectsPerRead;
        const projects: Row[] = await listAfter(kv, projectsPrefix, { after, limit });
        for (const { key } of projects) {
          if (isOwn(key, round)) { for (const rows of kinds) add(removalOf(rows, key)); }
        }
        after = projects.at(-1)?.key ?? null;
        const isMore = projects.length === projectsPerRead;
        if (!isMore) tookMs = clock.elapsed() - lookedAt;
        startWorkers(round);
        return isMore;
      },
    };
  }

  function startWorkers(round: Round): void {
    for (; workers < Math.min(kv.limits.inFlight, queue.length); workers++) {
      round.add(() => work(round).finally(() => workers--));
    }
  }

  async function work(round: Round): Promise<void> {
    for (let task = queue.shift(); task; task = queue.shift()) {
      const { name, run } = task;
      const isMore = await round.turn(() => run(round)).catch((error) => {
        // One project's error does not keep the others' rows.
        round.add(() => Promise.reject(error));
        return false;
      });
      if (isMore === null) return stop(task, round);
      if (isMore) queue.push(task);
      else known.delete(name);
    }
  }

  /** Ends a round that took too long: the next one begins with this task. */
  function stop(task: Task, round: Round): void {
    queue.unshift(task);
    round.unfinished();
    for (const { kind, endedAt } of queue) {
      if (kind !== null && endedAt !== null) round.left(kind, endedAt);
    }
  }

  return {
    begin(round) {
      const own = queue.splice(0).filter(({ projectKey }) =>
        !projectKey || isOwn(projectKey, round)
      );
      known.clear();
      own.forEach(add);
      if (!known.has("looks") && clock.elapsed() - lookedAt >= pauseRatio * tookMs) {
        lookedAt = clock.elapsed();
        add(looks());
      }
      startWorkers(round);
    },
  };
}

const isOwn = (projectKey: Key, round: Round) => round.owns(partOf(keyText(projectKey)));
