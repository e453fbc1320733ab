import type { EndpointDocs } from "./base/endpoint_doc.ts";
import { chatApiDoc } from "./formats/chat/api_doc.ts";
import { completionsApiDoc } from "./formats/completions/api_doc.ts";
import { completionsFormat } from "./formats/completions/completions_format.ts";
import { embeddingsApiDoc } from "./formats/embeddings/api_doc.ts";
import { speechApiDoc } from "./formats/audio/speech_api_doc.ts";
import { speechFormat } from "./formats/audio/speech_format.ts";
import {
  transcriptionsApiDoc,
  translationsApiDoc,
} from "./formats/audio/transcriptions_api_doc.ts";
import { transcriptionsFormat, translationsFormat } from "./formats/audio/transcriptions_format.ts";
import { imagesApiDoc } from "./formats/images/api_doc.ts";
import { imagesFormat } from "./formats/images/images_format.ts";
import { moderationsApiDoc } from "./formats/moderations/api_doc.ts";
import { moderationsFormat } from "./formats/moderations/moderations_format.ts";
import { embeddingsFormat } from "./formats/embeddings/embeddings_format.ts";
import { chatFormat } from "./formats/chat/chat_format.ts";
import { messagesApiDoc } from "./formats/messages/api_doc.ts";
import { messagesCount } from "./formats/messages/count_tokens.ts";
import { messagesFormat } from "./formats/messages/messages_format.ts";
import { responsesApiDoc } from "./formats/responses/api_doc.ts";
import { responsesFormat } from "./formats/responses/responses_format.ts";
import type { Format } from "./inference/format.ts";
import type { KeptOperation } from "./inference/kept/kept_routes.ts";
import type { FreeFormat } from "./inference/free_call.ts";
import type { inferenceRoutes } from "./inference/routes.ts";
import type { consoleRoutes } from "./console/routes.ts";
import type { docsRoutes } from "./docs/routes.tsx";
import type { assetRoutes } from "./pages/assets.ts";
import type { homeRoutes } from "./home/routes.tsx";
import type { guideRoutes } from "./guides/routes.tsx";
import type { healthRoutes } from "./health.ts";
import type { backupRoutes } from "./backup/routes.ts";
import type { exportRoutes } from "./export/routes.ts";
import type { ledgerAdminRoutes } from "./ledger/admin_routes.ts";
import type { metricsRoutes } from "./metrics/routes.ts";
import type { ledgerRoutes } from "./ledger/routes.ts";
import type { stripeRoutes } from "./payments/routes.ts";
import type { paywallRoutes } from "./paywall/routes.tsx";
import type { projectRoutes } from "./projects/routes.ts";
import type { verifyRoutes } from "./verify/routes.ts";
import type { webhookRoutes } from "./webhooks/routes.ts";
import type { walletRoutes } from "./wallets/routes.tsx";
import type { catalogueRoutes } from "./pricing/routes.ts";
import type { alertRoutes } from "./alerts/routes.ts";
import type { confirmRoutes } from "./alerts/confirm_routes.tsx";
import type { requestRoutes } from "./requests/routes.ts";
import type { summaryRoutes } from "./summaries/routes.ts";
import type { Route, Routes } from "./mount.ts";
import type { connectRoutes } from "./wallets/connect_routes.ts";

/** The handlers of every module. */
export interface RouteHandlers {
  webhooks: ReturnType<typeof webhookRoutes>;
  inference: ReturnType<typeof inferenceRoutes>;
  ledger: ReturnType<typeof ledgerRoutes>;
  users: ReturnType<typeof ledgerAdminRoutes>;
  projects: ReturnType<typeof projectRoutes>;
  connect: ReturnType<typeof connectRoutes>;
  stripe: ReturnType<typeof stripeRoutes>;
  paywall: ReturnType<typeof paywallRoutes>;
  wallets: ReturnType<typeof walletRoutes>;
  verify: ReturnType<typeof verifyRoutes>;
  summaries: ReturnType<typeof summaryRoutes>;
  requests: ReturnType<typeof requestRoutes>;
  alerts: ReturnType<typeof alertRoutes>;
  confirm: ReturnType<typeof confirmRoutes>;
  catalogue: ReturnType<typeof catalogueRoutes>;
  exports: ReturnType<typeof exportRoutes>;
  backup: ReturnType<typeof backupRoutes>;
  docs: ReturnType<typeof docsRoutes>;
  guides: ReturnType<typeof guideRoutes>;
  assets: ReturnType<typeof assetRoutes>;
  home: ReturnType<typeof homeRoutes>;
  health: ReturnType<typeof healthRoutes>;
  metrics: ReturnType<typeof metricsRoutes>;
  console: ReturnType<typeof consoleRoutes>;
}

const cors = true;

/** Maps every path of the service to its handlers. */
export function routeMap(handlers: RouteHandlers): Routes {
  const reservedUsers = new Set(["v1", "console", "docs"]);
  const routes: Routes = {
    ...formatRoutes(handlers.inference, reservedUsers),
    ...keptRoutes(handlers.inference, reservedUsers),
    ...freeRoutes(handlers.inference, reservedUsers),
    ...messagesRoutes(handlers.inference, reservedUsers),
    ...modelRoutes(handlers.inference),
    ...callerRoutes(handlers),
    ...operatorRoutes(handlers),
    ...stripeRouteMap(handlers),
    ...publicRoutes(handlers),
    ...handlers.console,
  };
  // A path segment below /v1 cannot name a user there. `v1` itself appears where a client appends
  // it to a base URL that contains it already: all users would share that user's balance.
  for (const path of Object.keys(routes)) {
    const word = /^\/v1\/([^/:]+)/.exec(path)?.[1];
    if (word) reservedUsers.add(word);
  }
  return routes;
}

/** The endpoints that call models, by their path below `/v1` and below `/v1/{user}`. */
const formats: Readonly<Record<string, { format: Format; apiDoc: EndpointDocs }>> = {
  "/chat/completions": { format: chatFormat, apiDoc: chatApiDoc },
  "/completions": { format: completionsFormat, apiDoc: completionsApiDoc },
  "/embeddings": { format: embeddingsFormat, apiDoc: embeddingsApiDoc },
  "/responses": { format: responsesFormat, apiDoc: responsesApiDoc },
  "/images/generations": { format: imagesFormat, apiDoc: imagesApiDoc },
  "/audio/speech": { format: speechFormat, apiDoc: speechApiDoc },
  "/audio/transcriptions": { format: transcriptionsFormat, apiDoc: transcriptionsApiDoc },
  "/audio/translations": { format: translationsFormat, apiDoc: translationsApiDoc },
};

/** Those that cost nothing. */
const freeFormats: Readonly<Record<string, { format: FreeFormat; apiDoc: EndpointDocs }>> = {
  "/moderations": { format: moderationsFormat, apiDoc: moderationsApiDoc },
};

/** The API documentation of these endpoints. */
export const formatsApiDoc: EndpointDocs = Object.assign(
  {},
  ...[...Object.values(formats), ...Object.values(freeFormats)].map(({ apiDoc }) => apiDoc),
  messagesApiDoc,
);

function formatRoutes(
  inference: RouteHandlers["inference"],
  reservedUsers: ReadonlySet<string>,
): Routes {
  const secretParams = ["user"];
  return Object.fromEntries(
    Object.entries(formats).flatMap(([path, { format }]) => {
      const { errorBody } = format;
      const POST = inference.call(format);
      const ofUser = inference.call(format, { reservedUsers });
      return [
        [`/v1${path}`, { cors, errorBody, POST }],
        [`/v1/:user${path}`, { cors, errorBody, secretParams, POST: ofUser }],
      ];
    }),
  );
}

/** Responses that the upstream keeps. */
function keptRoutes(
  { kept }: RouteHandlers["inference"],
  reservedUsers: ReadonlySet<string>,
): Routes {
  const routesAt = (base: string, options?: { reservedUsers: ReadonlySet<string> }): Routes => {
    const at = (method: KeptOperation["method"], suffix: string) =>
      kept({ method, suffix }, options);
    const secretParams = options ? ["user"] : [];
    const whole = { GET: at("GET", ""), DELETE: at("DELETE", "") };
    const id = `${base}/responses/:responseId`;
    return {
      [id]: { cors, secretParams, ...whole },
      [`${id}/cancel`]: { cors, secretParams, POST: at("POST", "/cancel") },
      [`${id}/input_items`]: { cors, secretParams, GET: at("GET", "/input_items") },
    };
  };
  return { ...routesAt("/v1"), ...routesAt("/v1/:user", { reservedUsers }) };
}

function freeRoutes(
  inference: RouteHandlers["inference"],
  reservedUsers: ReadonlySet<string>,
): Routes {
  const secretParams = ["user"];
  return Object.fromEntries(
    Object.entries(freeFormats).flatMap(([path, { format }]) => [
      [`/v1${path}`, { cors, POST: inference.freeCall(format) }],
      [`/v1/:user${path}`, {
        cors,
        secretParams,
        POST: inference.freeCall(format, { reservedUsers }),
      }],
    ]),
  );
}

/** Anthropic's clients add `/v1` to a base URL, also where that has a user at its end. */
function messagesRoutes(
  inference: RouteHandlers["inference"],
  reservedUsers: ReadonlySet<string>,
): Routes {
  const { errorBody, requestIdHeader } = messagesFormat;
  const common = { cors, errorBody, requestIdHeader } as const;
  const ofUser = { ...common, secretParams: ["user"] };
  const create = inference.call(messagesFormat, { reservedUsers });
  const count = inference.count(messagesCount, { reservedUsers });
  return {
    "/v1/messages": { ...common, POST: inference.call(messagesFormat) },
    "/v1/messages/count_tokens": { ...common, POST: inference.count(messagesCount) },
    "/v1/:user/messages": { ...ofUser, POST: create },
    "/v1/:user/messages/count_tokens": { ...ofUser, POST: count },
    "/v1/:user/v1/messages": { ...ofUser, POST: create },
    "/v1/:user/v1/messages/count_tokens": { ...ofUser, POST: count },
  };
}

function modelRoutes(inference: RouteHandlers["inference"]): Routes {
  return {
    "/v1/models": { cors, GET: inference.models },
    "/v1/models/*": { cors, GET: inference.model },
    "/v1/:user/models": { cors, secretParams: ["user"], GET: inference.models },
    "/v1/:user/models/*": { cors, secretParams: ["user"], GET: inference.model },
  };
}

/** Paths that need a project's key. */
function callerRoutes({ connect, ledger, webhooks }: RouteHandlers): Routes {
  return {
    "/v1/user/balance": { GET: ledger.balance },
    "/v1/user/balance/topup": { GET: ledger.topUp },
    "/v1/user/balance/deposit": { POST: ledger.deposit },
    "/v1/user/charge": { POST: ledger.charge },
    "/v1/user/refund": { POST: ledger.refund },
    "/v1/user/connect": { GET: connect.connect },
    "/v1/user/disconnect": { GET: connect.disconnect, POST: connect.disconnect },
    "/v1/user/activities": { GET: ledger.activities },

    "/v1/webhooks/subscriptions": {
      GET: webhooks.listSubscriptions,
      POST: webhooks.createSubscription,
    },
    "/v1/webhooks/subscriptions/:subscriptionId/test": { POST: webhooks.testSubscription },
    "/v1/webhooks/subscriptions/:subscriptionId": {
      GET: webhooks.getSubscription,
      DELETE: webhooks.deactivateSubscription,
    },
    "/v1/webhooks/logs": { GET: webhooks.logs },
  };
}

/** The same for projects and their keys. */
function projectRouteMap({ projects }: RouteHandlers): Routes {
  return {
    "/v1/admin/audit": { GET: projects.instanceAudit },
    "/v1/admin/projects": { GET: projects.listProjects, POST: projects.createProject },
    "/v1/admin/projects/:projectId": { GET: projects.getProject, PATCH: projects.updateProject },
    "/v1/admin/projects/:projectId/audit": { GET: projects.audit },
    "/v1/admin/projects/:projectId/archive": { POST: projects.archiveProject },
    "/v1/admin/projects/:projectId/keys": { GET: projects.listKeys, POST: projects.createKey },
    "/v1/admin/projects/:projectId/keys/:keyId": { DELETE: projects.revokeKey },
  };
}

/** Paths that need the operator's key. */
function operatorRoutes(services: RouteHandlers): Routes {
  const { users, webhooks, verify, summaries, requests, alerts, catalogue, exports, backup } =
    services;
  return {
    ...projectRouteMap(services),
    "/v1/admin/verify": { GET: verify.verify },
    "/v1/admin/backup": { GET: backup.backup },
    "/v1/admin/secrets/reseal": { POST: webhooks.resealSecrets },
    "/v1/admin/projects/:projectId/requests": { GET: requests.listRequests },
    "/v1/admin/projects/:projectId/alerts": { GET: alerts.list },
    "/v1/admin/projects/:projectId/alerts/test-email": { POST: alerts.test },
    "/v1/admin/projects/:projectId/summary": { GET: summaries.summary },
    "/v1/admin/catalogue": { GET: catalogue.read, POST: catalogue.refresh },
    "/v1/admin/catalogue/diff": { POST: catalogue.diff },
    "/v1/admin/projects/:projectId/export": { GET: exports.exportRecords },
    "/v1/admin/projects/:projectId/users": { GET: users.listUsers },
    "/v1/admin/projects/:projectId/users/:user": { secretParams: ["user"], GET: users.getUser },
    "/v1/admin/projects/:projectId/users/:user/activities": {
      secretParams: ["user"],
      GET: users.activities,
    },
    "/v1/admin/projects/:projectId/users/:user/deposit": {
      secretParams: ["user"],
      POST: users.deposit,
    },
    "/v1/admin/projects/:projectId/users/:user/charge": {
      secretParams: ["user"],
      POST: users.charge,
    },
    "/v1/admin/projects/:projectId/users/:user/refund": {
      secretParams: ["user"],
      POST: users.refund,
    },
    "/v1/admin/projects/:projectId/users/:user/forget": {
      secretParams: ["user"],
      POST: users.forget,
    },
    "/v1/admin/projects/:projectId/subscriptions/:subscriptionId": {
      PATCH: webhooks.operateSubscription,
    },
    ...webhookOperatorRoutes(services),
  };
}

/** The operator's paths for a project's webhooks. */
function webhookOperatorRoutes({ webhooks }: RouteHandlers): Routes {
  return {
    "/v1/admin/projects/:projectId/subscriptions": { GET: webhooks.listProjectsSubscriptions },
    "/v1/admin/projects/:projectId/subscriptions/:subscriptionId/test": {
      POST: webhooks.testProjectsSubscription,
    },
    "/v1/admin/projects/:projectId/subscriptions/:subscriptionId/redeliver": {
      POST: webhooks.redeliverAll,
    },
    "/v1/admin/projects/:projectId/deliveries/:deliveryId/redeliver": { POST: webhooks.redeliver },
    "/v1/admin/projects/:projectId/redeliveries/:jobId": { GET: webhooks.getRedelivery },
  };
}

/** Stripe's webhooks, and the operator's questions to Stripe. */
function stripeRouteMap({ stripe }: RouteHandlers): Routes {
  return {
    "/v1/stripe": { strangers: "stripe", POST: stripe.webhook },
    "/v1/stripe/:projectId": { strangers: "stripe", POST: stripe.webhook },
    "/v1/admin/projects/:projectId/stripe/connect": { POST: stripe.connect },
    "/v1/admin/stripe/reconcile": { POST: stripe.reconcile },
    "/v1/admin/projects/:projectId/stripe/reconcile": { POST: stripe.reconcile },
  };
}

/** Public paths: people's links, documentation and probes. */
function publicRoutes(
  { paywall, wallets, confirm, docs, guides, assets, home, health, metrics }: RouteHandlers,
): Routes {
  const secretParams = ["token"];
  const topUp: Route = {
    secretParams,
    strangers: "topUps",
    GET: paywall.showTopUp,
    POST: paywall.startTopUp,
  };
  const authorize: Route = {
    secretParams,
    strangers: "wallets",
    GET: wallets.showAuthorize,
    POST: wallets.decideAuthorize,
  };
  return {
    "/": { GET: home.home },
    "/t/:token": topUp,
    "/a/:token": authorize,
    // Links of older versions.
    "/topup/:token": topUp,
    "/authorize/:token": authorize,
    "/alerts/confirm/:token": {
      secretParams,
      strangers: "topUps",
      GET: confirm.show,
      POST: confirm.confirm,
    },
    "/wallet": { strangers: "wallets", GET: wallets.showWallet, POST: wallets.changeWallet },
    "/wallet/passkeys/options": { strangers: "wallets", POST: wallets.passkeyOptions },
    "/wallet/passkeys": { strangers: "wallets", POST: wallets.addPasskey },
    "/wallet/sign-in/options": { strangers: "wallets", POST: wallets.signInOptions },
    "/wallet/sign-in": { strangers: "wallets", POST: wallets.signIn },
    "/assets/:name": { GET: assets.asset },
    "/docs/guides": { GET: guides.contents },
    "/docs/guides/:name": { GET: guides.guide },
    "/openapi.json": { cors, GET: docs.openapi },
    "/docs": { GET: docs.overview },
    "/docs/api/:page": { GET: docs.page },
    "/docs/search": { GET: docs.search },
    "/healthz": { probe: true, GET: health.healthz },
    "/readyz": { probe: true, GET: health.readyz },
    "/metrics": { probe: true, GET: metrics.metrics },
  };
}
