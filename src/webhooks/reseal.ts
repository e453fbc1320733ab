import { auditRow } from "../projects/audit.ts";
import { pageOfProjects, resealed, resealProject, type ResealRooms } from "../projects/reseal.ts";
import { subscriptionKey } from "../store/keys.ts";
import { emptyWrite } from "../store/kv.ts";
import type { Sealed } from "../store/secrets.ts";
import type { Subscription } from "./schema.ts";
import { listSubscriptions, putSubscription, readSubscription } from "./store.ts";

/** How far a walk over all secrets has come. */
export interface ResealPage {
  /** Secrets that were under an older key, and no longer are. */
  resealed: number;
  nextCursor: string | null;
}

const attemptsMax = 8;

/**
 * Puts all stored secrets under the first key of `SECRETS_KEY`, a page of projects at each call, so
 * that the other keys can be taken away. Again is harmless.
 */
export function createReseal(
  rooms: ResealRooms,
): (cursor: string | undefined) => Promise<ResealPage> {
  const { kv } = rooms.deps;
  return async (cursor) => {
    const { projects, nextCursor } = await pageOfProjects(kv, cursor);
    let count = 0;
    for (const project of projects) {
      count += await resealProject(rooms, project);
      for (const subscription of await listSubscriptions(kv, project.id)) {
        count += await resealSubscription(rooms, subscription);
      }
    }
    return { resealed: count, nextCursor };
  };
}

async function resealSubscription(
  { deps, secrets }: ResealRooms,
  { projectId, id }: Subscription,
): Promise<number> {
  const { kv, committer } = deps;
  const place = subscriptionKey(projectId, id);
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const found = await readSubscription(kv, projectId, id);
    if (!found) return 0;
    let count = 0;
    const fresh = async (sealed: Sealed) => {
      const made = await secrets.reseal(sealed, place);
      if (made) count++;
      return made ?? sealed;
    };
    const { secret, oldSecrets, customHeaders } = found.value;
    const changed: Subscription = {
      ...found.value,
      secret: await fresh(secret),
      oldSecrets: await Promise.all(
        oldSecrets.map(async (old) => ({ ...old, secret: await fresh(old.secret) })),
      ),
      customHeaders: customHeaders && (await fresh(customHeaders)),
    };
    if (count === 0) return 0;
    const write = emptyWrite();
    putSubscription(write, changed, found.version);
    write.sets.push(auditRow(deps, projectId, resealed(id, count)));
    if ((await committer.commit(write)) !== null) return count;
  }
  throw new Error(`subscription ${id} kept changing`);
}
