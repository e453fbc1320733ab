import type { Deps } from "./deps.ts";
import { sentConfirmationRows } from "./alerts/confirmations.ts";
import { createSessionRemover } from "./console/sign_in/session_removal.ts";
import { chatReplayRows } from "./inference/receive/idempotency.ts";
import {
  createUnkeptRemoval,
  keptByUserRows,
  keptIdRows,
} from "./inference/kept/kept_responses.ts";
import { keptTurnRows } from "./inference/kept/kept_turns.ts";
import { cachedResponseRows } from "./inference/receive/response_cache.ts";
import { createUserStatsSweep } from "./ledger/user_stats.ts";
import { pendingPaymentRows } from "./payments/pending.ts";
import { reversalRows } from "./payments/reversals.ts";
import { unbookedPaymentRows } from "./payments/unbooked.ts";
import { unverifiedEventRows } from "./payments/unverified.ts";
import { paywalledRows } from "./paywall/conversion.ts";
import { linkRows, userLinkRows } from "./paywall/link_codes.ts";
import { createRequestRemoval } from "./requests/request_log.ts";
import type { ExpiringKind } from "./store/expiry.ts";
import { createExpiryIndexing } from "./store/expiry_index.ts";
import { createExpiryRemover } from "./store/expiry_removal.ts";
import { createProjectRemover } from "./store/project_rows.ts";
import type { Remover } from "./store/removal.ts";
import { createMarkerSweep, createTurnSweep } from "./store/stale_rows.ts";
import { createTopUsersRemoval } from "./summaries/top_users.ts";
import { targetHealthRows } from "./upstreams/shared_openings.ts";
import { deviceRows, personDeviceRows } from "./wallets/device_rows.ts";
import { walletLinkRows, walletMailRows } from "./wallets/email_rows.ts";
import { redeliveryJobRows } from "./webhooks/delivery/redelivery.ts";
import { createTrim } from "./webhooks/delivery/trim.ts";

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
  targetHealthRows,
  sentConfirmationRows,
  deviceRows,
  personDeviceRows,
  walletLinkRows,
  walletMailRows,
];

/** Creates what removes everything that is kept for a time. */
export function createRemovers(deps: Deps): readonly Remover[] {
  return [
    createExpiryRemover(deps, expiringKinds),
    createProjectRemover(deps, [
      ...createTrim(deps),
      createRequestRemoval(deps),
      ...createTopUsersRemoval(deps),
      ...createUnkeptRemoval(deps),
    ]),
    createSessionRemover(deps),
  ];
}

/** How long one sweep looks at rows of 0.9.0. */
const indexingMs = 1_000;

/**
 * Does the work that one process does for all, one module after the other; each call does as much
 * as its time allows. An error of one module does not keep the others from their work.
 */
export function createSweep(
  deps: Deps,
  sweepers: readonly { sweep(): Promise<void> }[],
): () => Promise<void> {
  const { clock } = deps;
  const indexOldRows = createExpiryIndexing(deps, expiringKinds);
  const works = [
    ...sweepers.map((sweeper) => () => sweeper.sweep()),
    () => {
      const deadline = clock.elapsed() + indexingMs;
      return indexOldRows(() => clock.elapsed() >= deadline);
    },
    createMarkerSweep(deps),
    createTurnSweep(deps),
    createUserStatsSweep(deps),
  ];
  return async () => {
    const errors: unknown[] = [];
    for (const work of works) await work().catch((error) => void errors.push(error));
    if (errors.length > 0) throw errors[0];
  };
}
