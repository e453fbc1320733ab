import { badCursor } from "../base/errors.ts";
import type { Incoming } from "../base/handler.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import { scanHoldIndex, scanIdempotency, scanLedger } from "../ledger/verify.ts";
import { scanBudgets } from "../ledger/verify_budgets.ts";
import { scanPayments } from "../payments/verify.ts";
import type { AdminGuard } from "../projects/admin_guard.ts";
import { ScanBudget } from "../store/scan.ts";
import { scanWebhooks } from "../webhooks/verify.ts";
import type { VerifiedPage } from "./api_doc.ts";
import { recomputeCost } from "./recompute_cost.ts";
import { decodeVerifyCursor, encodeVerifyCursor } from "./schema.ts";

/** One call does a limited amount of work, so that no other request has to wait for it. */
const readsPerCall = 2_000;
const callMs = 200;

/** `GET /v1/admin/verify`: checks the store's invariants, page by page, while the service runs. */
export function verifyRoutes({ deps, adminGuard }: { deps: Deps; adminGuard: AdminGuard }) {
  const scans = [
    scanLedger(deps, recomputeCost),
    scanIdempotency(deps),
    scanHoldIndex(deps),
    scanBudgets(deps),
    scanPayments(deps),
    ...scanWebhooks(deps),
  ];

  return {
    verify: adminGuard(async (incoming: Incoming) => {
      const cursor = incoming.query("cursor");
      const from = cursor === undefined ? null : decodeVerifyCursor(cursor);
      const at = from === null ? 0 : scans.findIndex(({ name }) => name === from.scan);
      const scan = scans[at];
      if (!scan) throw badCursor();
      const deadline = deps.clock.elapsed() + callMs;
      const budget = new ScanBudget(readsPerCall, () => deps.clock.elapsed() >= deadline);
      const { checked, faults, next } = await scan.page(from?.place ?? null, budget);
      const following = next === null ? scans[at + 1]?.name : scan.name;
      const nextCursor = following === undefined
        ? null
        : encodeVerifyCursor({ scan: following, place: next });
      const answer: VerifiedPage = { scan: scan.name, checked, faults, nextCursor };
      return jsonResponse(200, answer, incoming.requestId, { "cache-control": "no-store" });
    }),
  };
}
