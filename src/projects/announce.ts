import { ApiError } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import type { NewEvent } from "../events/event.ts";
import { appendEvents } from "../events/outbox.ts";
import { projectKey } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import type { Directory } from "./directory.ts";

/**
 * Commits events that have no other write to ride on, such as a refusal's. The project is read
 * afresh, so that no subscription is missed that was there before. Throws 503.
 */
export type Announce = (projectId: string, events: readonly NewEvent[]) => Promise<void>;

const attemptsMax = 8;

/** Announcing over the committer. */
export function createAnnounce(
  { committer, clock, id }: Pick<Deps, "committer" | "clock" | "id">,
  directory: Directory,
): Announce {
  return async (projectId, events) => {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const { project, version } = await directory.refresh(projectId);
      const write = emptyWrite();
      appendEvents(write, project, { events, now: clock.now(), id });
      if (write.sets.length === 0) return;
      write.checks.push({ key: projectKey(projectId), version });
      if ((await committer.commit(write)) !== null) return;
    }
    throw new ApiError(503, {
      message: "The project's settings kept changing. Try again.",
      code: "contended",
    });
  };
}
