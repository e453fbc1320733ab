import type { ProjectAdmin, RevokeWithMade } from "../../projects/admin.ts";
import type { Subscriptions } from "./subscriptions.ts";

/** Revokes keys together with the keys and subscriptions that were made with them. */
export function createRevokeWithMade(
  { admin, subscriptions }: { admin: ProjectAdmin; subscriptions: Subscriptions },
): RevokeWithMade {
  return async (projectId, keyId, by) => {
    // The maker first, so that it makes nothing more meanwhile.
    const key = await admin.revokeKey(projectId, keyId, by);
    const keys = await admin.revokeMade(projectId, keyId, by);
    const makers = new Set([keyId, ...keys]);
    const made = (await subscriptions.list(projectId, "active"))
      .filter(({ createdBy }) => makers.has(createdBy));
    for (const { id } of made) await subscriptions.deactivate(projectId, id, by);
    return { key, made: [...keys, ...made.map(({ id }) => id)] };
  };
}
