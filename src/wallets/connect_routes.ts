import { badRequest } from "../base/errors.ts";
import type { Handler } from "../base/handler.ts";
import { bodyBytesMax } from "../base/limits.ts";
import { parseWith, readJsonBodyIfAny } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import { walletUserOf } from "../ledger/account.ts";
import { findAccount } from "../ledger/authorization.ts";
import type { Offer } from "../ledger/offer.ts";
import { type Auth, byKey } from "../projects/auth.ts";
import { endUser } from "../projects/end_user.ts";
import type { Authorizations } from "./authorizations.ts";
import { type ConnectionStatus, disconnectBodySchema, type DisconnectResult } from "./api_doc.ts";

interface ConnectDeps {
  deps: Deps;
  auth: Auth;
  authorizations: Authorizations;
  offer: Offer;
}

/**
 * Whether a user has authorized a project to charge them, and the end of it. In the default mode
 * there is nothing to authorize: `connect` reports so, and `disconnect` is 400 `mode_conflict`.
 */
export function connectRoutes(
  { deps, auth, authorizations, offer }: ConnectDeps,
): { connect: Handler; disconnect: Handler } {
  return {
    async connect({ request, requestId, query }) {
      const caller = await auth.caller(request, "money");
      const user = endUser(caller, request, { query: query("user") });
      const { project } = caller.snapshot;
      const ref = await findAccount(deps.kv, project, user);
      if (!ref) {
        const refused = {
          reason: "authorization_required" as const,
          trigger: byKey(caller),
          balance: "0",
          languages: request.headers.get("accept-language"),
        };
        const offered = await offer(project, user, refused);
        const body: ConnectionStatus = { connected: false, ...offered };
        return jsonResponse(200, body, requestId);
      }
      const message = project.mode === "default"
        ? "This app needs no authorization."
        : "This user has allowed the app to charge a wallet.";
      const connectedUser = walletUserOf(ref);
      const body: ConnectionStatus = { connected: true, message, connectedUser };
      return jsonResponse(200, body, requestId);
    },
    async disconnect({ request, requestId, query, inTime }) {
      const caller = await auth.caller(request, "money");
      const { project } = caller.snapshot;
      if (project.mode === "default") {
        const message = "In the default mode users give no authorization, so there is none to end.";
        throw badRequest(null, message, "mode_conflict");
      }
      // A caller with nothing to send except the user may omit the body and name the user
      // elsewhere.
      const sent = await inTime(readJsonBodyIfAny(request, bodyBytesMax));
      const user = endUser(caller, request, {
        body: parseWith(disconnectBodySchema, sent).user,
        query: query("user"),
      });
      const by = { personId: null, trigger: byKey(caller) };
      const ended = await authorizations.revoke({ projectId: project.id, user }, by);
      const message = ended
        ? "The app may no longer charge this user's wallet."
        : "There was no authorization to end.";
      const body: DisconnectResult = { disconnected: true, message };
      return jsonResponse(200, body, requestId);
    },
  };
}
