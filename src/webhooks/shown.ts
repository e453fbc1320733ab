import type { Project } from "../projects/schema.ts";
import type { Kv } from "../store/kv.ts";
import type { Subscription } from "./schema.ts";
import { listNewestSubscriptions, readSubscription } from "./store.ts";

/**
 * Of a project's subscriptions the newest 500, and those before them that are active, in order of
 * creation: of the ones that have ended there is no end, and each is opened to be shown.
 */
export async function listShown(
  kv: Kv,
  { id, listeners }: Pick<Project, "id" | "listeners">,
): Promise<Subscription[]> {
  const newest = await listNewestSubscriptions(kv, id);
  const shown = new Set(newest.map((subscription) => subscription.id));
  const others = listeners.filter(({ subscriptionId }) => !shown.has(subscriptionId));
  const older = await Promise.all(
    others.map(({ subscriptionId }) => readSubscription(kv, id, subscriptionId)),
  );
  const active = older.flatMap((found) => (found ? [found.value] : []));
  return [...active, ...newest].sort((a, b) => (a.id < b.id ? -1 : 1));
}
