import type { EndpointDocs } from "./base/endpoint_doc.ts";
import { alertApiDoc } from "./alerts/api_doc.ts";
import { backupApiDoc } from "./backup/api_doc.ts";
import { callApiDoc, modelsApiDoc } from "./inference/api_doc.ts";
import { keptApiDoc } from "./inference/kept/kept_api_doc.ts";
import { docsApiDoc } from "./docs/api_doc.ts";
import { archiveApiDoc } from "./archive/api_doc.ts";
import { exportApiDoc } from "./export/api_doc.ts";
import { healthApiDoc } from "./health.ts";
import { userApiDoc } from "./ledger/api/admin_api_doc.ts";
import { ledgerApiDoc } from "./ledger/api/api_doc.ts";
import { catalogueApiDoc } from "./pricing/api_doc.ts";
import { statementApiDoc } from "./statements/api_doc.ts";
import { summaryApiDoc } from "./summaries/api_doc.ts";
import { metricsApiDoc } from "./metrics/api_doc.ts";
import { paymentsApiDoc } from "./payments/api_doc.ts";
import { projectApiDoc } from "./projects/api_doc.ts";
import { requestApiDoc } from "./requests/api_doc.ts";
import { verifyApiDoc } from "./verify/api_doc.ts";
import { servedEndpoints } from "./formats/served_endpoints.ts";
import { walletAdminApiDoc } from "./wallets/admin_api_doc.ts";
import { walletApiDoc } from "./wallets/api_doc.ts";
import { webhookApiDoc } from "./webhooks/api_doc.ts";

/** The API documentation of every path that machines call. */
export const apiDoc: EndpointDocs = {
  ...Object.assign({}, ...Object.values(servedEndpoints).map(callApiDoc)),
  ...keptApiDoc,
  ...modelsApiDoc,
  ...ledgerApiDoc,
  ...userApiDoc,
  ...summaryApiDoc,
  ...statementApiDoc,
  ...requestApiDoc,
  ...alertApiDoc,
  ...catalogueApiDoc,
  ...exportApiDoc,
  ...archiveApiDoc,
  ...backupApiDoc,
  ...walletApiDoc,
  ...walletAdminApiDoc,
  ...webhookApiDoc,
  ...projectApiDoc,
  ...verifyApiDoc,
  ...paymentsApiDoc,
  ...healthApiDoc,
  ...metricsApiDoc,
  ...docsApiDoc,
};
