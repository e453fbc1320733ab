import { badRequest } from "../base/errors.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { bodyBytesMax } from "../base/limits.ts";
import { parseWith, readJsonBody } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import { checkUserId } from "../base/user_id.ts";
import type { Deps } from "../deps.ts";
import { type AdminGuard, checkId } from "../projects/admin_guard.ts";
import { byOperator } from "../projects/audit.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import { joinBodySchema } from "./join_schema.ts";
import type { WalletJoins } from "./joins.ts";
import { readWallet, viewJoin, walletsOfUser } from "./wallet_view.ts";

interface AdminDeps {
  deps: Pick<Deps, "kv" | "clock" | "holders">;
  adminGuard: AdminGuard;
  projectCache: ProjectCache;
  joins: WalletJoins;
}

/** The operator's endpoints for wallets. They need `ADMIN_KEY`. */
export function walletAdminRoutes(
  { deps, adminGuard, projectCache, joins }: AdminDeps,
): { findWallets: Handler; getWallet: Handler; joinWallet: Handler; withdrawJoin: Handler } {
  const walletOf = ({ param }: Incoming) => checkId(param("walletId"), "wallet");
  const answer = (value: unknown, { requestId }: Incoming) =>
    jsonResponse(200, value, requestId, { "cache-control": "no-store" });
  const by = ({ address }: Incoming) => byOperator("api", address());
  return {
    findWallets: adminGuard(async (incoming) => {
      const { query } = incoming;
      const projectId = query("projectId");
      if (projectId === undefined) throw badRequest("projectId", "'projectId' is required.");
      const { project } = await projectCache.refresh(checkId(projectId, "project"));
      const user = checkUserId(query("user"), "user");
      const ids = await walletsOfUser(deps.kv, project, user);
      return answer(
        { wallets: await Promise.all(ids.map((id) => readWallet(deps, id))) },
        incoming,
      );
    }),
    getWallet: adminGuard(async (incoming) =>
      answer({ wallet: await readWallet(deps, walletOf(incoming)) }, incoming)
    ),
    joinWallet: adminGuard(async (incoming) => {
      const from = walletOf(incoming);
      const { value } = await incoming.inTime(readJsonBody(incoming.request, bodyBytesMax));
      const { into, reasons } = parseWith(joinBodySchema, value);
      const stated = { from: reasons.from ?? null, into: reasons.into ?? null };
      const join = await joins.ask({ from, into, reasons: stated }, by(incoming));
      return answer({ join: viewJoin(join) }, incoming);
    }),
    withdrawJoin: adminGuard(async (incoming) => {
      await joins.withdraw(walletOf(incoming), by(incoming));
      return answer({ withdrawn: true }, incoming);
    }),
  };
}
