import { badRequest } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { jsonResponse } from "../base/response.ts";
import type { Auth } from "../projects/auth.ts";
import { endUser } from "../projects/end_user.ts";

/**
 * Whether a user has allowed a project to charge them. In the default mode there is nothing to
 * allow: `connect` says so, and `disconnect` is 400 `mode_conflict`.
 */
export function connectRoutes({ auth }: { auth: Auth }): { connect: Handler; disconnect: Handler } {
  return {
    async connect({ request, requestId, query }) {
      const caller = await auth.caller(request, "money");
      const connectedUser = endUser(caller, request, { query: query("user") });
      const message = "This app needs no authorization.";
      return jsonResponse(200, { connected: true, message, connectedUser }, requestId);
    },
    async disconnect({ request }) {
      await auth.caller(request, "money");
      const message = "In the default mode users give no authorization, so there is none to end.";
      throw badRequest(null, message, "mode_conflict");
    },
  };
}
