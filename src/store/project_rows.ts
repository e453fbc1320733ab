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
export interface ProjectRow {
  key: Key;
  value: Uint8Array;
}

/** What one page has removed. */
export interface RemovedPage {
  /** How many rows. */
  count: number;
  isMore: boolean;
  /** When the last of them ended, in milliseconds since 1970: what is left ended no earlier. */
  endedAt: number;
}

/** Some rows of one project of which more have ended than a page removes. */
interface Busy {
  rows: ProjectRows;
  projectKey: Key;
  /** In milliseconds since 1970. */
  endedAt: number;
}

/** So few that a round is not over before its looks are. */
const projectsPerRead = 20;
/** How much longer the pause between two looks at all projects is than the looks themselves. */
const pauseRatio = 9;

/**
 * Removes what has ended from project after project. Those with more than a page go on page by page
 * while others are looked at, so that neither a busy project waits for many quiet ones, nor these
 * for it.
 */
export function createProjectRemover(
  { kv, clock }: { kv: Kv; clock: Pick<Clock, "elapsed"> },
  kinds: readonly ProjectRows[],
): Remover {
  const busy = new Map<string, Busy>();
  /** The last project of the looks under way; null between two. */
  let after: Key | null = null;
  let lookedAt = -Infinity;
  let tookMs = 0;

  async function removePage(
    rows: ProjectRows,
    { key, value }: Row,
    round: Round,
  ): Promise<RemovedPage> {
    if (!value) return { count: 0, isMore: false, endedAt: round.now };
    const page = await rows.removePage({ key, value }, round.now);
    round.removed(rows.kind, page.count);
    return page;
  }

  /** Removes page after page of what a project has too much of for one. */
  async function goOn(name: string, one: Busy, round: Round): Promise<void> {
    const { rows, projectKey } = one;
    while (busy.has(name)) {
      const page = await round.turn(async () => removePage(rows, await kv.get(projectKey), round))
        .catch((error) => {
          busy.delete(name);
          throw error;
        });
      if (page === null) return round.left(rows.kind, one.endedAt);
      one.endedAt = page.endedAt;
      if (!page.isMore) busy.delete(name);
    }
  }

  /** Returns whether the project was looked at: not where it is late. */
  async function look(rows: ProjectRows, project: Row, round: Round): Promise<boolean> {
    // Several may be of one kind, such as those of each status.
    const name = `${kinds.indexOf(rows)} ${keyText(project.key)}`;
    if (busy.has(name)) return true;
    const page = await round.turn(() => removePage(rows, project, round));
    if (page === null) return false;
    if (!page.isMore) return true;
    const one: Busy = { rows, projectKey: project.key, endedAt: page.endedAt };
    busy.set(name, one);
    round.add(() => goOn(name, one, round));
    return true;
  }

  /** Looks at some projects; returns whether it was not too late for one of them. */
  async function lookAt(projects: readonly Row[], round: Round): Promise<boolean> {
    let isComplete = true;
    const looks = projects.flatMap((project) => kinds.map((rows) => look(rows, project, round)));
    for (const result of await Promise.allSettled(looks)) {
      // One project's error does not keep the others' rows.
      if (result.status === "rejected") round.add(() => Promise.reject(result.reason));
      else isComplete &&= result.value;
    }
    return isComplete;
  }

  /** Looks at all projects, as far as the round's time allows; the next one goes on. */
  async function lookAtAll(round: Round): Promise<void> {
    if (after === null && clock.elapsed() - lookedAt < pauseRatio * tookMs) return;
    if (after === null) lookedAt = clock.elapsed();
    do {
      const place: Key | null = after;
      const projects = await round.turn(() =>
        listAfter(kv, projectsPrefix, { after: place, limit: projectsPerRead })
      );
      const own = projects?.filter(({ key }) => round.owns(partOf(keyText(key)))) ?? [];
      if (projects === null || !(await lookAt(own, round))) return round.unfinished();
      after = projects.length < projectsPerRead ? null : projects.at(-1)?.key ?? null;
    } while (after !== null);
    tookMs = clock.elapsed() - lookedAt;
  }

  return {
    begin(round) {
      for (const [name, one] of busy) {
        if (round.owns(partOf(keyText(one.projectKey)))) round.add(() => goOn(name, one, round));
        else busy.delete(name);
      }
      round.add(() => lookAtAll(round));
    },
  };
}
