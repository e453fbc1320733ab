import { ApiError, badRequest, notFound } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import type { Config } from "../config.ts";
import type { Auth } from "./auth.ts";

/** Lets only the operator through: whoever has `ADMIN_KEY`. Throws 401, 404 where none is set. */
export type AdminGuard = (handler: Handler) => Handler;

/** The operator's door. */
export function createAdminGuard({ adminKey }: Config, auth: Auth): AdminGuard {
  return (handler) => (incoming) => {
    if (!adminKey) {
      throw new ApiError(404, {
        message: "The admin API is off: set ADMIN_KEY to turn it on.",
        code: "unknown_url",
      });
    }
    auth.admin(incoming.request);
    return handler(incoming);
  };
}

/** An id from an address, as it is. Throws 404 for what cannot be one, 400 for what is too long. */
export function checkId(id: string, what: string): string {
  if (id.length > 64) throw badRequest(null, `That is no ${what}'s id.`);
  if (!/^[a-z]+_[0-9A-Z]+$/.test(id)) throw notFound(what);
  return id;
}
