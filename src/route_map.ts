import { endpoints } from "./base/endpoints.ts";
import { servedEndpoints } from "./formats/served_endpoints.ts";
import type { ServedEndpoint } from "./inference/served_endpoint.ts";
import type { KeptOperation } from "./inference/kept/kept_routes.ts";
import type { inferenceRoutes } from "./inference/routes.ts";
import type { consoleRoutes } from "./console/routes.ts";
import type { docsRoutes } from "./docs/routes.tsx";
import type { assetRoutes } from "./pages/assets.ts";
import type { homeRoutes } from "./home/routes.tsx";
import type { guideRoutes } from "./guides/routes.tsx";
import type { healthRoutes } from "./health.ts";
import type { backupRoutes } from "./backup/routes.ts";
import type { archiveRoutes } from "./archive/routes.ts";
import type { exportRoutes } from "./export/routes.ts";
import type { ledgerAdminRoutes } from "./ledger/api/admin_routes.ts";
import type { metricsRoutes } from "./metrics/routes.ts";
import type { ledgerRoutes } from "./ledger/api/routes.ts";
import type { stripeRoutes } from "./payments/routes.ts";
import type { paywallRoutes } from "./paywall/routes.tsx";
import type { projectRoutes } from "./projects/routes.ts";
import type { verifyRoutes } from "./verify/routes.ts";
import type { webhookRoutes } from "./webhooks/routes.ts";
import type { walletAdminRoutes } from "./wallets/admin_routes.ts";
import type { walletRoutes } from "./wallets/routes.tsx";
import type { catalogueRoutes } from "./pricing/routes.ts";
import type { alertRoutes } from "./alerts/routes.ts";
import type { confirmRoutes } from "./alerts/confirm_routes.tsx";
import type { requestRoutes } from "./requests/routes.ts";
import type { statementRoutes } from "./statements/routes.ts";
import type { summaryRoutes } from "./summaries/routes.ts";
import { type Route, type Routes, wordsBelowV1 } from "./mount.ts";
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
  walletAdmin: ReturnType<typeof walletAdminRoutes>;
  verify: ReturnType<typeof verifyRoutes>;
  summaries: ReturnType<typeof summaryRoutes>;
  statements: ReturnType<typeof statementRoutes>;
  requests: ReturnType<typeof requestRoutes>;
  alerts: ReturnType<typeof alertRoutes>;
  confirm: ReturnType<typeof confirmRoutes>;
  catalogue: ReturnType<typeof catalogueRoutes>;
  exports: ReturnType<typeof exportRoutes>;
  archive: ReturnType<typeof archiveRoutes>;
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
    ...endpointRoutes(handlers.inference, reservedUsers, Object.values(servedEndpoints)),
    ...keptRoutes(handlers.inference, reservedUsers),
    ...modelRoutes(handlers.inference),
    ...callerRoutes(handlers),
    ...operatorRoutes(handlers),
    ...stripeRouteMap(handlers),
    ...publicRoutes(handlers),
    ...handlers.console,
  };
  // A path segment below /v1 cannot name a user there. `v1` itself appears where a client appends
  // it to a base URL that contains it already: all users would share that user's balance.
  for (const word of wordsBelowV1(routes)) reservedUsers.add(word);
  return routes;
}

const ofUsers = { cors, secretParams: ["user"] } as const;

/** The paths of the endpoints that call models: below `/v1`, and below `/v1/{user}`. */
export function endpointRoutes(
  inference: Pick<RouteHandlers["inference"], "serve">,
  reservedUsers: ReadonlySet<string>,
  endpoints: readonly ServedEndpoint[],
): Routes {
  const routes: Routes = {};
  for (const { format, clientsAddV1 } of endpoints) {
    const { errorBody, requestIdHeader } = format.kind === "count" ? format.format : format;
    const own = { errorBody, requestIdHeader };
    const ofUser = { ...ofUsers, ...own, POST: inference.serve(format, { reservedUsers }) };
    routes[`/v1${format.path}`] = { cors, ...own, POST: inference.serve(format) };
    routes[`/v1/:user${format.path}`] = ofUser;
    if (clientsAddV1) routes[`/v1/:user/v1${format.path}`] = ofUser;
  }
  return routes;
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
    const id = `${base}${endpoints.responses.path}/:responseId`;
    return {
      [id]: { cors, secretParams, ...whole },
      [`${id}/cancel`]: { cors, secretParams, POST: at("POST", "/cancel") },
      [`${id}/input_items`]: { cors, secretParams, GET: at("GET", "/input_items") },
    };
  };
  return { ...routesAt("/v1"), ...routesAt("/v1/:user", { reservedUsers }) };
}

function modelRoutes(inference: RouteHandlers["inference"]): Routes {
  return {
    "/v1/models": { cors, GET: inference.models },
    "/v1/models/*": { cors, GET: inference.model },
    "/v1/:user/models": { ...ofUsers, GET: inference.models },
    "/v1/:user/models/*": { ...ofUsers, GET: inference.model },
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

/** Paths of projects and their keys, for the operator. */
function projectRouteMap({ projects, archive }: RouteHandlers): Routes {
  return {
    "/v1/admin/audit": { GET: projects.instanceAudit },
    "/v1/admin/projects": { GET: projects.listProjects, POST: projects.createProject },
    "/v1/admin/projects/:projectId": { GET: projects.getProject, PATCH: projects.updateProject },
    "/v1/admin/projects/:projectId/audit": { GET: projects.audit },
    "/v1/admin/projects/:projectId/archive": { POST: projects.archiveProject },
    "/v1/admin/projects/:projectId/archive/entries": {
      GET: archive.archivable,
      POST: archive.removeArchived,
    },
    "/v1/admin/projects/:projectId/keys": { GET: projects.listKeys, POST: projects.createKey },
    "/v1/admin/projects/:projectId/keys/:keyId": { DELETE: projects.revokeKey },
  };
}

/** Paths of wallets, for the operator. */
function walletRouteMap({ walletAdmin }: RouteHandlers): Routes {
  return {
    "/v1/admin/wallets": { GET: walletAdmin.findWallets },
    "/v1/admin/wallets/:walletId": { GET: walletAdmin.getWallet },
    "/v1/admin/wallets/:walletId/join": {
      POST: walletAdmin.joinWallet,
      DELETE: walletAdmin.withdrawJoin,
    },
  };
}

/** Paths that need the operator's key. */
function operatorRoutes(services: RouteHandlers): Routes {
  const { users, webhooks, verify, summaries, requests, alerts, catalogue } = services;
  return {
    ...projectRouteMap(services),
    ...walletRouteMap(services),
    "/v1/admin/verify": { GET: verify.verify },
    "/v1/admin/backup": { GET: services.backup.backup },
    "/v1/admin/secrets/reseal": { POST: webhooks.resealSecrets },
    "/v1/admin/projects/:projectId/requests": { GET: requests.listRequests },
    "/v1/admin/projects/:projectId/alerts": { GET: alerts.list },
    "/v1/admin/projects/:projectId/alerts/test-email": { POST: alerts.test },
    "/v1/admin/projects/:projectId/summary": { GET: summaries.summary },
    "/v1/admin/projects/:projectId/statement": { GET: services.statements.statement },
    "/v1/admin/projects/:projectId/balances": { GET: services.statements.balances },
    "/v1/admin/catalogue": { GET: catalogue.read, POST: catalogue.refresh },
    "/v1/admin/catalogue/diff": { POST: catalogue.diff },
    "/v1/admin/projects/:projectId/export": { GET: services.exports.exportRecords },
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

/** Where people see their wallets, and open them. */
function walletPages(wallets: RouteHandlers["wallets"]): Routes {
  const strangers = "wallets";
  return {
    "/wallet": { strangers, GET: wallets.showWallet, POST: wallets.changeWallet },
    "/wallet/email": { strangers, POST: wallets.askLink },
    "/wallet/mail/:token": {
      secretParams: ["token"],
      strangers,
      GET: wallets.showMailLink,
      POST: wallets.useMailLink,
    },
    "/wallet/passkeys/options": { strangers, POST: wallets.passkeyOptions },
    "/wallet/passkeys": { strangers, POST: wallets.addPasskey },
    "/wallet/sign-in/options": { strangers, POST: wallets.signInOptions },
    "/wallet/sign-in": { strangers, POST: wallets.signIn },
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
    // Links of a burst: they carry what they are for.
    "/topup/:token": topUp,
    "/authorize/:token": authorize,
    "/alerts/confirm/:token": {
      secretParams,
      strangers: "topUps",
      GET: confirm.show,
      POST: confirm.confirm,
    },
    ...walletPages(wallets),
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
