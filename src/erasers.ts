import { createAlertEraser } from "./alerts/erase.ts";
import type { AccountQueue } from "./ledger/account_queue.ts";
import { createRefusalEraser } from "./inference/erase.ts";
import { createResponseEraser } from "./inference/receive/idempotency.ts";
import { createKeptErasers } from "./inference/kept/kept_responses.ts";
import type { RefusalReports } from "./inference/admit/refusal_reports.ts";
import { createCacheEraser } from "./inference/receive/response_cache.ts";
import type { Deps } from "./deps.ts";
import { createUserStatsEraser } from "./ledger/user_stats.ts";
import { createPaywalledErasers } from "./paywall/conversion.ts";
import { createRequestEraser, type RequestLog } from "./requests/request_log.ts";
import { createLinkErasers } from "./paywall/link_codes.ts";
import { createPaymentErasers } from "./payments/erase.ts";
import type { ProjectCache } from "./projects/project_cache.ts";
import { createAuditEraser, createKeyEraser, createOwnLimitsEraser } from "./projects/erase.ts";
import type { Eraser } from "./store/erase.ts";
import { createTopUsersEraser } from "./summaries/top_users.ts";
import { createConnectionEraser } from "./wallets/erase.ts";
import { createWebhookErasers } from "./webhooks/erase.ts";

/**
 * Every place besides the ledger that names users, in the order of erasure: first what belongs to
 * money, while the account is closed, then the rest.
 */
export function createErasers(
  deps: Deps,
  { projectCache, queue, refusalReports, requestLog }: {
    projectCache: ProjectCache;
    queue: AccountQueue;
    refusalReports: RefusalReports;
    requestLog: Pick<RequestLog, "flush">;
  },
): { closed: readonly Eraser[]; open: readonly Eraser[] } {
  return {
    closed: [
      ...createPaymentErasers(deps),
      createKeyEraser(deps),
      createOwnLimitsEraser(deps),
      createAuditEraser(deps),
      createResponseEraser(deps),
      ...createKeptErasers(deps),
      createCacheEraser(deps),
      createConnectionEraser({ deps, projectCache, queue }),
      // What processes still count together is written before the log is searched.
      createRefusalEraser(deps, refusalReports),
      createRequestEraser(deps, requestLog),
    ],
    open: [
      createTopUsersEraser(deps),
      ...createLinkErasers(deps),
      ...createPaywalledErasers(deps),
      createUserStatsEraser(deps),
      createAlertEraser(deps),
      ...createWebhookErasers(deps),
    ],
  };
}
