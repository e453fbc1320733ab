import { ApiError } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { NewEvent } from "../events/event.ts";
import { appendEvents } from "../events/outbox.ts";
import { attemptsToWrite } from "../store/backoff.ts";
import { projectKey } from "../store/keys.ts";
import { emptyWrite, type Write } from "../store/kv.ts";
import type { ProjectCache } from "./project_cache.ts";
import type { Project } from "./schema.ts";

/**
 * Commits events that have no other write to go with, such as a refusal's. The project is read
 * again first, so that no existing subscription is missed. Throws 503.
 */
export type EmitEvents = (projectId: string, events: readonly NewEvent[]) => Promise<void>;

/**
 * Commits a project's records other than money, with their events. `build` reads what it needs and
 * checks it in its write; it runs again when that has changed. Null means nothing to do. Throws
 * 503.
 */
export type CommitWithEvents = (
  projectId: string,
  build: (project: Project) => Promise<{ write: Write; events: readonly NewEvent[] } | null>,
) => Promise<void>;

/** Creates commits with events over the committer. */
export function createCommitWithEvents(
  { committer, clock, id, randomBytes }: Pick<Deps, "committer" | "clock" | "id" | "randomBytes">,
  projectCache: ProjectCache,
): CommitWithEvents {
  return async (projectId, build) => {
    // The row of a user who is charged quickly changes all the time.
    for await (const _ of attemptsToWrite({ clock, randomBytes })) {
      const { project, version } = await projectCache.refresh(projectId);
      const built = await build(project);
      if (!built) return;
      const { write, events } = built;
      appendEvents(write, project, { events, now: clock.now(), id });
      if (write.sets.length === 0 && write.deletes.length === 0) return;
      write.checks.push({ key: projectKey(projectId), version });
      if ((await committer.commit(write)) !== null) return;
    }
    throw new ApiError(503, {
      message: "The project's settings kept changing. Try again.",
      code: "contended",
    });
  };
}

/** Emitting is a commit of nothing but events. */
export function createEmit(commit: CommitWithEvents): EmitEvents {
  return (projectId, events) => commit(projectId, async () => ({ write: emptyWrite(), events }));
}
