import type { Operations } from "./base/operation.ts";
import { backupOperations } from "./backup/operations.ts";
import { chatOperations } from "./chat/operations.ts";
import { docsOperations } from "./docs/operations.ts";
import { exportOperations } from "./export/operations.ts";
import { healthOperations } from "./health.ts";
import { userOperations } from "./ledger/admin_operations.ts";
import { ledgerOperations } from "./ledger/operations.ts";
import { summaryOperations } from "./summaries/operations.ts";
import { metricsOperations } from "./metrics/operations.ts";
import { paywallOperations } from "./paywall/operations.ts";
import { projectOperations } from "./projects/operations.ts";
import { verifyOperations } from "./verify/operations.ts";
import { connectOperations } from "./wallets/operations.ts";
import { webhookOperations } from "./webhooks/operations.ts";

/** What the API document says of every address of the route map that machines call. */
export const operations: Operations = {
  ...chatOperations,
  ...ledgerOperations,
  ...userOperations,
  ...summaryOperations,
  ...exportOperations,
  ...backupOperations,
  ...connectOperations,
  ...webhookOperations,
  ...projectOperations,
  ...verifyOperations,
  ...paywallOperations,
  ...healthOperations,
  ...metricsOperations,
  ...docsOperations,
};
