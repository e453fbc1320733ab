import { ApiError, badRequest, notFound } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import type { Config } from "../config/config.ts";
import { type Auth, sentKey } from "./auth.ts";
import { byUnknown, type RefusedKeys } from "./refused_keys.ts";

/**
 * Lets only the operator through, by `ADMIN_KEY`. Throws 401, and 404 where no key is set. The
 * audit trail of the instance records wrong keys.
 */
export type AdminGuard = (handler: Handler) => Handler;

/** Creates the guard of the operator's endpoints. */
export function createAdminGuard(
  { adminKey }: Pick<Config, "adminKey">,
  auth: Pick<Auth, "admin">,
  refusedKeys: Pick<RefusedKeys, "note">,
): AdminGuard {
  async function refuse({ request, address }: Incoming, error: unknown): Promise<never> {
    if (sentKey(request) !== null) {
      const by = byUnknown("api", address());
      await refusedKeys.note({ action: "admin.key_refused", by, projectId: null });
    }
    throw error;
  }

  return (handler) => (incoming) => {
    if (!adminKey) {
      throw new ApiError(404, {
        message: "The admin API is disabled. Set ADMIN_KEY to enable it.",
        code: "unknown_url",
      });
    }
    try {
      auth.admin(incoming.request);
    } catch (error) {
      return refuse(incoming, error);
    }
    return handler(incoming);
  };
}

/** Returns an id from a URL. Throws 404 for what cannot be an id, 400 for what is too long. */
export function checkId(id: string, what: string): string {
  if (id.length > 64) throw badRequest(null, `This is not a ${what} id.`);
  if (!/^[a-z]+_[0-9A-Z]+$/.test(id)) throw notFound(what);
  return id;
}
