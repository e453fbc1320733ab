import { createReplayEraser } from "./chat/replay.ts";
import type { Deps } from "./deps.ts";
import { createPaymentErasers } from "./paywall/erase_payments.ts";
import type { Directory } from "./projects/directory.ts";
import { createAuditEraser } from "./projects/erase_audit.ts";
import { createKeyEraser } from "./projects/erase_keys.ts";
import type { Eraser } from "./store/erase.ts";
import { createTopUsersEraser } from "./summaries/top_users.ts";
import { createConnectionEraser } from "./wallets/erase_connections.ts";
import { createWebhookErasers } from "./webhooks/erase.ts";

/**
 * Every place besides the ledger that names users, in the order in which a user who is forgotten is
 * taken out of it: what belongs to money while nothing can be booked, the rest afterwards.
 */
export function createErasers(
  deps: Deps,
  directory: Directory,
): { closed: readonly Eraser[]; open: readonly Eraser[] } {
  return {
    closed: [
      ...createPaymentErasers(deps),
      createKeyEraser(deps),
      createAuditEraser(deps),
      createReplayEraser(deps),
      createConnectionEraser({ deps, directory }),
    ],
    open: [createTopUsersEraser(deps), ...createWebhookErasers(deps)],
  };
}
