import type { Operations } from "./base/operation.ts";
import { docsOperations } from "./docs/operations.ts";
import { healthOperations } from "./health.ts";
import { ledgerOperations } from "./ledger/operations.ts";
import { summaryOperations } from "./summaries/operations.ts";

/** What the API document says of every address of the route map that machines call. */
export const operations: Operations = {
  ...ledgerOperations,
  ...summaryOperations,
  ...healthOperations,
  ...docsOperations,
};
