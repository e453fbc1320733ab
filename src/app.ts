import { backupRoutes } from "./backup/routes.ts";
import { createKeptQuota } from "./inference/kept/kept_quota.ts";
import { createCounting } from "./inference/admit/prompt_counting.ts";
import { createRateLimiter } from "./inference/admit/rate_limiter.ts";
import { createModels } from "./upstreams/models.ts";
import { inferenceRoutes } from "./inference/routes.ts";
import { createRefusalReports, type RefusalReports } from "./inference/admit/refusal_reports.ts";
import { createAnsweredConversations } from "./inference/kept/conversations.ts";
import { createRunningCalls, type RunningCalls, runningCallsPart } from "./inference/running.ts";
import { createReasoningModels } from "./upstreams/reasoning.ts";
import { createTargetHealth } from "./upstreams/target_health.ts";
import { createUpstreams } from "./upstreams/upstreams.ts";
import { consoleRoutes } from "./console/routes.ts";
import { createSessions } from "./console/sign_in/session.ts";
import { sizesOf } from "./base/shared_budgets.ts";
import { PlaceLimiter } from "./base/place_limiter.ts";
import { MemoryBudget } from "./base/memory_budget.ts";
import { errorFields } from "./base/errors.ts";
import type { Deps, OutsideDeps } from "./deps.ts";
import { docsRoutes } from "./docs/routes.tsx";
import { assetRoutes } from "./pages/assets.ts";
import { homeRoutes } from "./home/routes.tsx";
import { ownGuides } from "./guides/own_guides.ts";
import { guideRoutes } from "./guides/routes.tsx";
import { createErasers } from "./erasers.ts";
import { createRemovers } from "./sweeps.ts";
import { createRemoval, type Removal } from "./store/removal.ts";
import { createUpkeep, type Upkeep } from "./upkeep.ts";
import { createFleet, type Fleet } from "./fleet/fleet.ts";
import { archiveRoutes } from "./archive/routes.ts";
import { exportRoutes } from "./export/routes.ts";
import { healthRoutes } from "./health.ts";
import { createNotFound } from "./not_found.tsx";
import { metricsRoutes } from "./metrics/routes.ts";
import { type Load, mount, type Routes } from "./mount.ts";
import { type RouteHandlers, routeMap } from "./route_map.ts";
import { createAccountQueue } from "./ledger/account_queue.ts";
import { ledgerAdminRoutes } from "./ledger/api/admin_routes.ts";
import { createForget } from "./ledger/forget.ts";
import { createHolds, type Holds } from "./ledger/hold.ts";
import { createMoneyRecorder } from "./ledger/record.ts";
import { createTransfers } from "./ledger/transfer.ts";
import { ledgerRoutes } from "./ledger/api/routes.ts";
import { apiDoc } from "./api_doc.ts";
import { createOutboxNotifier } from "./events/outbox_notifier.ts";
import { createHoldSweep } from "./ledger/hold_sweep.ts";
import { createDeviceCookies } from "./wallets/device_cookies.ts";
import { createRequestLog } from "./requests/request_log.ts";
import { alertRoutes } from "./alerts/routes.ts";
import { createConfirmations } from "./alerts/confirmations.ts";
import { confirmRoutes } from "./alerts/confirm_routes.tsx";
import { createAlerts } from "./alerts/alerts.ts";
import { requestRoutes } from "./requests/routes.ts";
import { createConversion, notingDeposits } from "./paywall/conversion.ts";
import { createLinks } from "./paywall/links.ts";
import { createSignedTokens } from "./store/signed_tokens.ts";
import { createOffers } from "./paywall/offer.ts";
import { createCheckAtStripe } from "./payments/check_at_stripe.ts";
import { createReportUnbooked } from "./payments/unbooked.ts";
import { createUnverifiedReports } from "./payments/unverified.ts";
import { findUnpayable } from "./payments/merchant.ts";
import { createConnectStripe } from "./payments/connect_stripe.ts";
import { stripeRoutes } from "./payments/routes.ts";
import { paywallRoutes } from "./paywall/routes.tsx";
import { createCatalogue } from "./pricing/catalogue.ts";
import { createCatalogueRefresh } from "./pricing/refresh.ts";
import { catalogueRoutes } from "./pricing/routes.ts";
import { createPrices } from "./pricing/terms.ts";
import { createProjectAdmin, type ProjectAdmin } from "./projects/admin.ts";
import {
  createCommitWithEvents,
  createEmit,
  type EmitEvents,
} from "./projects/commit_with_events.ts";
import { createAuth } from "./projects/auth.ts";
import { createRefusedKeys } from "./projects/refused_keys.ts";
import { createProjectCache, type ProjectCache } from "./projects/project_cache.ts";
import { createAdminGuard } from "./projects/admin_guard.ts";
import { projectRoutes } from "./projects/routes.ts";
import { createKeptTexts } from "./store/kept_texts.ts";
import { createSealingMark, type SealingMark } from "./store/sealed_with.ts";
import { createSecrets, type Secrets } from "./store/secrets.ts";
import { verifyRoutes } from "./verify/routes.ts";
import { createBacklog } from "./webhooks/delivery/backlog.ts";
import { createDispatcher, type Dispatcher } from "./webhooks/delivery/dispatcher.ts";
import { createReportFailing } from "./webhooks/subscriptions/failing.ts";
import { createGuard } from "./webhooks/delivery/guard.ts";
import { createProbe, createReseal, type Probe } from "./webhooks/subscriptions/reseal.ts";
import { createReclaim } from "./webhooks/delivery/reclaim.ts";
import { createRedelivery } from "./webhooks/delivery/redelivery.ts";
import { webhookRoutes } from "./webhooks/routes.ts";
import { createRevokeWithMade } from "./webhooks/subscriptions/revoke_made.ts";
import { createSubscriptions } from "./webhooks/subscriptions/subscriptions.ts";
import { createAuthorizations } from "./wallets/authorizations.ts";
import { connectRoutes } from "./wallets/connect_routes.ts";
import { createWalletEmails } from "./wallets/emails.ts";
import { createWalletJoins } from "./wallets/joins.ts";
import { createPasskeys } from "./wallets/passkeys.ts";
import { takingBack } from "./wallets/take_back.ts";
import { walletAdminRoutes } from "./wallets/admin_routes.ts";
import { walletRoutes } from "./wallets/routes.tsx";
import { statementRoutes } from "./statements/routes.ts";
import { summaryRoutes } from "./summaries/routes.ts";
import { createRefusedModels } from "./summaries/refused_models.ts";
import { createTopUsers } from "./summaries/top_users.ts";

/** The whole service, without a socket. */
export interface App extends Upkeep {
  /** `connection` is what `Deno.serve` passes about it. */
  fetch(request: Request, connection?: unknown): Response | Promise<Response>;
  /** Every route and its handlers. */
  routes: Routes;
  /** The calls under way: a clean stop waits for them. */
  running: RunningCalls;
  admin: ProjectAdmin;
  /** The deliveries under way: polled regularly, and stopped last. */
  dispatcher: Dispatcher;
  /** Finds active projects whose users cannot pay. */
  findUnpayable(): Promise<{ id: string; name: string }[]>;
  /** Checks whether stored secrets can be decrypted, by a sample. */
  probeSecrets(): Promise<Probe>;
  /**
   * From now on every response closes its connection, and `/readyz` answers 503. Requests are
   * accepted as before.
   */
  announceStop(): void;
  /** For how long no request has come, in ms, since `announceStop`; 0 while one is handled. */
  quietMs(): number;
  /** Records that secrets may be encrypted with this process's key, and what to do about others. */
  sealingMark: Pick<SealingMark, "note" | "warning">;
}

/** Connects the modules. */
export async function createApp(outside: OutsideDeps): Promise<App> {
  const services = await openServices(outside);
  const { deps, running, admin, dispatcher, sealingMark } = services;
  const { holdSweep, reclaim, redelivery, forget, alerts, joins } = services;
  const load: Load = {
    requests: 0,
    streams: () => running.streams,
    stopping: null,
  };
  const routes = routeMap(openHandlers(services, load));
  const notFound = createNotFound(deps.config);
  const { fetch, flush: flushLog } = mount(deps, routes, { load, notFound });
  const checkAtStripe = createCheckAtStripe(services);
  const sweepers = [holdSweep, reclaim, redelivery, forget, checkAtStripe, alerts, joins];
  const upkeep = createUpkeep(deps, services, sweepers);
  return {
    fetch,
    routes,
    running,
    admin,
    dispatcher,
    ...upkeep,
    findUnpayable: () => findUnpayable(deps, services.projectCache),
    probeSecrets: createProbe(deps.kv, services.secrets),
    sealingMark,
    announceStop: () => void (load.stopping = { requestedAt: deps.clock.elapsed() }),
    quietMs: () =>
      load.requests > 0 ? 0 : deps.clock.elapsed() - (load.stopping?.requestedAt ?? Infinity),
    flush: () => upkeep.flush().finally(flushLog),
  };
}

/** What the modules offer each other. */
async function openServices(outside: OutsideDeps) {
  const outboxNotifier = createOutboxNotifier(outside.committer);
  const fleet = createFleet(outside);
  const { holders } = fleet;
  const deps: Deps = { ...outside, committer: outboxNotifier.committer, holders };
  const secrets = await createSecrets(deps.config.secretsKeys, deps.randomBytes);
  const projects = openProjects(deps, secrets);
  const { projectCache, auth, admin, commit, emit } = projects;
  const ledger = openLedger(deps, { projectCache, emit });
  const opened = await openLinks(deps, secrets);
  const joins = createWalletJoins(deps, createTransfers(deps));
  const requestLog = createRequestLog(deps);
  const refusalReports = createRefusalReports(deps, emit, requestLog);
  const refusedKeys = createRefusedKeys(deps);
  const erasers = createErasers(deps, { ...projects, ...ledger, refusalReports, requestLog });
  const conversion = createConversion(deps);
  const webhooks = openWebhooks(deps, { ...projects, secrets });
  outboxNotifier.listen(webhooks.dispatcher.wake);
  const confirmations = await createConfirmations({ deps, admin, projectCache, secrets });
  return {
    deps,
    secrets,
    texts: createKeptTexts(deps.config.secretsKeys, deps.randomBytes),
    ...projects,
    ...ledger,
    recorder: notingDeposits(takingBack(ledger.recorder, joins), conversion),
    joins,
    ...opened,
    authorizations: createAuthorizations(deps, commit),
    refusalReports,
    requestLog,
    conversion,
    forget: createForget(deps, { queue: ledger.queue, erasers }),
    ...createOffers({ ...opened, emit }),
    refusedKeys,
    adminGuard: createAdminGuard(deps.config, auth, refusedKeys),
    ...webhooks,
    connectStripe: createConnectStripe(deps, admin),
    reportUnbooked: createReportUnbooked(deps),
    unverified: createUnverifiedReports(deps),
    confirmations,
    alerts: createAlerts({ deps, subscriptions: webhooks.subscriptions, commit, confirmations }),
    ...openPricing(deps),
    holdSweep: createHoldSweep(deps, ledger.queue),
    fleet,
    ...joinFleet(deps, { fleet, ...ledger, ...webhooks, refusalReports }),
    sessions: createSessions({ deps, auth, projectCache }),
    ...openUpstreams(deps, secrets),
  };
}

type Services = Awaited<ReturnType<typeof openServices>>;

/** The handlers of every module. */
function openHandlers(services: Services, load: Load): RouteHandlers {
  const { deps } = services;
  const { config } = deps;
  const guides = ownGuides(deps.guides, config);
  return {
    inference: openInference(services),
    ledger: ledgerRoutes(services),
    users: ledgerAdminRoutes(services),
    projects: projectRoutes(services),
    webhooks: webhookRoutes(services),
    connect: connectRoutes(services),
    stripe: stripeRoutes(services),
    paywall: paywallRoutes(services),
    wallets: walletRoutes(services),
    walletAdmin: walletAdminRoutes(services),
    verify: verifyRoutes(services),
    catalogue: catalogueRoutes(services),
    summaries: summaryRoutes(services),
    statements: statementRoutes(services),
    requests: requestRoutes(services),
    alerts: alertRoutes(services),
    confirm: confirmRoutes(services),
    exports: exportRoutes(services),
    archive: archiveRoutes(services),
    backup: backupRoutes(services),
    docs: docsRoutes({ deps: { config, guides }, operations: apiDoc }),
    home: homeRoutes(deps),
    guides: guideRoutes({ config, guides }),
    assets: assetRoutes(deps.fonts),
    health: healthRoutes({ ...services, load }),
    metrics: openMetrics(services, load),
    console: consoleRoutes(services),
  };
}

/** Joins what the processes of a store count together, and what they divide among themselves. */
function joinFleet(
  deps: Deps,
  { fleet, holds, dispatcher, refusalReports }: {
    fleet: Fleet;
    holds: Holds;
    dispatcher: Dispatcher;
    refusalReports: RefusalReports;
  },
): { running: RunningCalls; removal: Removal } {
  const running = createRunningCalls(deps, holds);
  fleet.join(runningCallsPart, running.part);
  fleet.join("refusals", refusalReports.part);
  fleet.join("endpoints", dispatcher.part);
  const isBusy = () => running.size > 0;
  const removal = createRemoval(deps, { removers: createRemovers(deps), owns: fleet.owns, isBusy });
  return { running, removal };
}

function openProjects(deps: Deps, secrets: Secrets) {
  const projectCache = createProjectCache(deps);
  const commit = createCommitWithEvents(deps, projectCache);
  return {
    projectCache,
    auth: createAuth(deps, projectCache),
    admin: createProjectAdmin(deps, { projectCache, secrets }),
    commit,
    emit: createEmit(commit),
    sealingMark: createSealingMark(deps),
  };
}

function openLedger(
  deps: Deps,
  { projectCache, emit }: { projectCache: ProjectCache; emit: EmitEvents },
) {
  const topUsers = createTopUsers(deps);
  const queue = createAccountQueue(deps, { projectCache, topUsers });
  const recorder = createMoneyRecorder(deps, queue, emit);
  return { topUsers, queue, recorder, holds: createHolds(deps, queue) };
}

function openUpstreams(deps: Deps, secrets: Secrets) {
  return { upstreams: createUpstreams(deps, secrets), targetHealth: createTargetHealth(deps) };
}

function openPricing(deps: Deps) {
  const catalogue = createCatalogue();
  const catalogueRefresh = createCatalogueRefresh(deps, catalogue);
  const prices = createPrices(catalogue, deps.config.upstream?.url ?? null);
  return { prices, catalogue, catalogueRefresh };
}

function openInference(services: Services) {
  const { deps, upstreams, fleet } = services;
  const { requestsMax, bodiesBytesMax } = deps.config;
  const models = createModels({ deps, upstreams, prices: services.prices });
  const rateLimiter = createRateLimiter(deps.clock);
  fleet.join("keys", rateLimiter.parts.taken);
  fleet.join("keys_running", rateLimiter.parts.running);
  const reasoningModels = createReasoningModels(
    deps,
    (error) => deps.log("warn", "reasoning_not_stored", errorFields(error)),
  );
  return inferenceRoutes({
    ...services,
    ...upstreams,
    conversations: createAnsweredConversations(),
    rateLimiter,
    reasoningModels,
    refusedModels: createRefusedModels(deps.clock),
    ...createCounting(deps.clock),
    places: new PlaceLimiter(
      { each: sizesOf("calls", requestsMax).each },
      () => deps.metrics.refusals.overloaded.add(),
    ),
    responseMemory: new MemoryBudget(sizesOf("responses", bodiesBytesMax).all),
    keptQuota: createKeptQuota(deps),
    waiters: new Map(),
  }, models);
}

function openMetrics({ deps, running, holdSweep, dispatcher, removal }: Services, load: Load) {
  return metricsRoutes(deps, {
    requests: () => load.requests,
    answers: () => running.size,
    holds: holdSweep.lastRound,
    deliveries: dispatcher.load,
    backlog: createBacklog(deps),
    removalBehindMs: removal.behindMs,
  });
}

async function openLinks(deps: Deps, secrets: Secrets) {
  const deviceCookies = await createDeviceCookies(deps, secrets);
  return {
    links: await createLinks({ deps, secrets }),
    deviceCookies,
    emails: createWalletEmails(deps, deviceCookies),
    passkeys: createPasskeys(deps, await createSignedTokens(secrets, "passkey challenges")),
  };
}

function openWebhooks(
  deps: Deps,
  { admin, projectCache, secrets, sealingMark, commit }: ReturnType<typeof openProjects> & {
    secrets: Secrets;
    sealingMark: SealingMark;
  },
) {
  const { config } = deps;
  const guard = createGuard({
    allowCidrs: config.webhooks.allowCidrs,
    dev: config.dev,
    baseUrl: config.baseUrl,
    resolve: deps.resolve,
    clock: deps.clock,
  });
  const reportFailing = createReportFailing(deps, commit);
  const subscriptions = createSubscriptions({ deps, admin, projectCache, secrets, guard });
  const dispatcher = createDispatcher({ deps, projectCache, guard, subscriptions, reportFailing });
  const redelivery = createRedelivery(deps, dispatcher);
  const reclaim = createReclaim(deps, dispatcher.poll);
  return {
    reclaim,
    subscriptions,
    dispatcher,
    redelivery,
    reseal: createReseal({ deps, admin, secrets, sealingMark }),
    revokeWithMade: createRevokeWithMade({ admin, subscriptions }),
  };
}
