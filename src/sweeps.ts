import type { Deps } from "./deps.ts";
import { sweepStoredResponses } from "./inference/idempotency.ts";
import { createCacheSweep } from "./inference/response_cache.ts";
import { createKeptSweep } from "./inference/kept_responses.ts";
import { createRequestSweep } from "./requests/request_log.ts";
import { createPaywalledSweep } from "./paywall/conversion.ts";
import { createUserStatsSweep } from "./ledger/user_stats.ts";
import { createLinkSweep } from "./paywall/link_codes.ts";
import { createPendingSweep } from "./payments/pending.ts";
import { createReversalSweep } from "./payments/reversals.ts";
import { createUnbookedSweep } from "./payments/unbooked.ts";
import { createUnverifiedSweep } from "./payments/unverified.ts";
import { createTrim } from "./webhooks/trim.ts";
import { createTopUsersSweep } from "./summaries/top_users.ts";
import { createMarkerSweep } from "./store/commit.ts";

/** Cleans up, one module after the other; a bounded part at each call. */
export function createSweep(
  deps: Deps,
  sweepers: readonly { sweep(): Promise<void> }[],
): () => Promise<void> {
  const trim = createTrim(deps);
  const sweepMarkers = createMarkerSweep(deps);
  const sweepKept = createKeptSweep(deps);
  const sweepCaches = createCacheSweep(deps);
  const sweepPayments = [
    createReversalSweep(deps),
    createUnbookedSweep(deps),
    createUnverifiedSweep(deps),
    createPendingSweep(deps),
  ];
  // Last: what they remove or compute can wait for the others.
  const sweepPages = [
    createLinkSweep(deps),
    createRequestSweep(deps),
    createTopUsersSweep(deps),
    createPaywalledSweep(deps),
    createUserStatsSweep(deps),
  ];
  return async () => {
    for (const sweeper of sweepers) await sweeper.sweep();
    await sweepStoredResponses(deps);
    await sweepKept();
    await sweepCaches();
    for (const sweepRows of sweepPayments) await sweepRows();
    await trim();
    await sweepMarkers();
    for (const sweepRows of sweepPages) await sweepRows();
  };
}
