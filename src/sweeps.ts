import type { Deps } from "./deps.ts";
import { chatReplayRows } from "./inference/idempotency.ts";
import { createUnkeptSweep, keptByUserRows, keptIdRows } from "./inference/kept_responses.ts";
import { keptTurnRows } from "./inference/kept_turns.ts";
import { cachedResponseRows } from "./inference/response_cache.ts";
import { createUserStatsSweep } from "./ledger/user_stats.ts";
import { pendingPaymentRows } from "./payments/pending.ts";
import { reversalRows } from "./payments/reversals.ts";
import { unbookedPaymentRows } from "./payments/unbooked.ts";
import { unverifiedEventRows } from "./payments/unverified.ts";
import { paywalledRows } from "./paywall/conversion.ts";
import { linkRows, userLinkRows } from "./paywall/link_codes.ts";
import { createRequestSweep } from "./requests/request_log.ts";
import { createMarkerSweep } from "./store/commit.ts";
import { type ExpiringKind, removeExpired } from "./store/expiry.ts";
import { createExpiryIndexing } from "./store/expiry_index.ts";
import { createTopUsersSweep } from "./summaries/top_users.ts";
import { redeliveryJobRows } from "./webhooks/redelivery.ts";
import { createTrim } from "./webhooks/trim.ts";

/**
 * Everything that is kept until a time that its own row says. What is kept in order of time, such
 * as requests and deliveries, has no such row: it is removed from its oldest on.
 */
export const expiringKinds: readonly ExpiringKind[] = [
  chatReplayRows,
  cachedResponseRows,
  keptIdRows,
  keptTurnRows,
  keptByUserRows,
  linkRows,
  userLinkRows,
  paywalledRows,
  pendingPaymentRows,
  reversalRows,
  unbookedPaymentRows,
  unverifiedEventRows,
  redeliveryJobRows,
];

/** How long one sweep removes what has ended, while there is more. */
const expiredMs = 3_000;
/** How long one sweep looks at rows of an older version. */
const indexingMs = 1_000;

/** Cleans up, one module after the other; each call does as much as its time allows. */
export function createSweep(
  deps: Deps,
  sweepers: readonly { sweep(): Promise<void> }[],
): () => Promise<void> {
  const { clock } = deps;
  const lateAfter = (ms: number) => {
    const deadline = clock.elapsed() + ms;
    return () => clock.elapsed() >= deadline;
  };
  const indexOldRows = createExpiryIndexing(deps, expiringKinds);
  const others = [
    createTrim(deps),
    createMarkerSweep(deps),
    createUnkeptSweep(deps),
    createRequestSweep(deps),
    createTopUsersSweep(deps),
    createUserStatsSweep(deps),
  ];
  return async () => {
    for (const sweeper of sweepers) await sweeper.sweep();
    await indexOldRows(lateAfter(indexingMs));
    const isLate = lateAfter(expiredMs);
    await removeExpired(deps, { kinds: expiringKinds, now: clock.now(), isLate });
    for (const sweepRows of others) await sweepRows();
  };
}
