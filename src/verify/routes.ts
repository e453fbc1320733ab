import { badCursor } from "../base/errors.ts";
import type { Incoming } from "../base/handler.ts";
import { parseWith, readQuery } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import { scanHoldIndex, scanIdempotency } from "../ledger/verify/records.ts";
import { type LedgerRange, scanLedger, settledMs } from "../ledger/verify/verify.ts";
import { scanBudgets } from "../ledger/verify/budgets.ts";
import { scanPayments } from "../payments/verify.ts";
import type { AdminGuard } from "../projects/admin_guard.ts";
import { type Scan, ScanBudget } from "../store/scan.ts";
import { scanWebhooks } from "../webhooks/verify.ts";
import type { VerifiedPage } from "./api_doc.ts";
import { recomputeCost } from "./recompute_cost.ts";
import {
  decodeVerifyCursor,
  encodeVerifyCursor,
  rangeOf,
  type VerifyPosition,
  verifyQuerySchema,
} from "./schema.ts";

/** One call does a limited amount of work, so that no other request has to wait for it. */
const readsPerCall = 2_000;
const callMs = 200;

/** `GET /v1/admin/verify`: checks the store's invariants, page by page, while the service runs. */
export function verifyRoutes({ deps, adminGuard }: { deps: Deps; adminGuard: AdminGuard }) {
  const others = [
    scanIdempotency(deps),
    scanHoldIndex(deps),
    scanBudgets(deps),
    scanPayments(deps),
    ...scanWebhooks(deps),
  ];

  /** The scans of a range: each part has its share of the ledger, and some of the others. */
  function scansOf(range: LedgerRange): Scan[] {
    const { owner, part, parts } = range;
    const own = others.filter((_, at) => owner === null && at % parts === part - 1);
    return [scanLedger(deps, recomputeCost, range), ...own];
  }

  function startOf(query: unknown): VerifyPosition {
    const { cursor, ...given } = parseWith(verifyQuerySchema, query);
    if (cursor !== undefined) return decodeVerifyCursor(cursor);
    const range = rangeOf(given);
    const until = range.until ?? deps.clock.now() - settledMs;
    return { range: { ...range, until }, scan: "ledger", place: null };
  }

  return {
    verify: adminGuard(async (incoming: Incoming) => {
      const { range, scan: name, place } = startOf(readQuery(incoming.request));
      const scans = scansOf(range);
      const at = scans.findIndex((scan) => scan.name === name);
      const scan = scans[at];
      if (!scan) throw badCursor();
      const deadline = deps.clock.elapsed() + callMs;
      const budget = new ScanBudget(readsPerCall, () => deps.clock.elapsed() >= deadline);
      const { checked, faults, tallies = {}, next } = await scan.page(place, budget);
      const following = next === null ? scans[at + 1]?.name : scan.name;
      const answer: VerifiedPage = {
        scan: scan.name,
        checked,
        faults,
        tallies,
        until: new Date(range.until).toISOString(),
        nextCursor: following === undefined
          ? null
          : encodeVerifyCursor({ range, scan: following, place: next }),
      };
      return jsonResponse(200, answer, incoming.requestId, { "cache-control": "no-store" });
    }),
  };
}
