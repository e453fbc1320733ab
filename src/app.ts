import { backupRoutes } from "./backup/routes.ts";
import type { ChatRooms } from "./chat/answer.ts";
import { createKeyGates } from "./chat/limits.ts";
import { createModels } from "./chat/models.ts";
import { sweepReplays } from "./chat/replay.ts";
import { chatRoutes } from "./chat/routes.ts";
import { createRunning, type Running } from "./chat/running.ts";
import { createUpstreams } from "./chat/upstreams.ts";
import { consoleRoutes } from "./console/routes.ts";
import { createSessions } from "./console/session.ts";
import type { Deps } from "./deps.ts";
import { docsRoutes } from "./docs/routes.tsx";
import { guideRoutes } from "./guides/routes.tsx";
import { createErasers } from "./erasers.ts";
import { exportRoutes } from "./export/routes.ts";
import { healthRoutes } from "./health.ts";
import { createLost } from "./lost.tsx";
import { metricsRoutes } from "./metrics/routes.ts";
import { type Load, mount, type Routes } from "./mount.ts";
import { routeMap } from "./route_map.ts";
import { createAccountQueue } from "./ledger/account_queue.ts";
import { ledgerAdminRoutes } from "./ledger/admin_routes.ts";
import { createForget } from "./ledger/forget.ts";
import { createHolds } from "./ledger/hold.ts";
import { createPost } from "./ledger/post.ts";
import { ledgerRoutes } from "./ledger/routes.ts";
import { operations } from "./operations.ts";
import { createBell } from "./events/bell.ts";
import { createHoldSweep, type HoldSweep } from "./ledger/sweep.ts";
import { createDevices } from "./paywall/device.ts";
import { createLinks } from "./paywall/link.ts";
import { createReversalSweep } from "./paywall/reversals.ts";
import { createTokens } from "./paywall/token.ts";
import { createWaysOut } from "./paywall/way_out.ts";
import { paywallRoutes } from "./paywall/routes.tsx";
import { createProjectAdmin, type ProjectAdmin } from "./projects/admin.ts";
import { type Announce, createAnnounce, createCommit } from "./projects/announce.ts";
import { createAuth } from "./projects/auth.ts";
import { createDirectory, type Directory } from "./projects/directory.ts";
import { createAdminGuard } from "./projects/operator.ts";
import { projectRoutes } from "./projects/routes.ts";
import { createMarkerSweep } from "./store/marker_sweep.ts";
import { createSecrets, type Secrets } from "./store/secrets.ts";
import { verifyRoutes } from "./verify/routes.ts";
import { createBacklog } from "./webhooks/backlog.ts";
import { createDispatcher, type Dispatcher } from "./webhooks/dispatcher.ts";
import { createGuard } from "./webhooks/guard.ts";
import { createProbe, type Probe } from "./webhooks/probe_secrets.ts";
import { createRedelivery } from "./webhooks/redelivery.ts";
import { createReseal } from "./webhooks/reseal.ts";
import { webhookRoutes } from "./webhooks/routes.ts";
import { createSubscriptions } from "./webhooks/subscriptions.ts";
import { createAuthorizations } from "./wallets/authorizations.ts";
import { connectRoutes } from "./wallets/connect.ts";
import { createPasskeys } from "./wallets/passkeys.ts";
import { walletRoutes } from "./wallets/routes.tsx";
import { summaryRoutes } from "./summaries/routes.ts";
import { createTopUsers } from "./summaries/top_users.ts";
import { createTrim } from "./webhooks/trim.ts";

/** The whole service, without a socket. */
export interface App {
  /** `connection` is what `Deno.serve` tells of it. */
  fetch(request: Request, connection?: unknown): Response | Promise<Response>;
  /** The whole outside: which address leads into which room. */
  routes: Routes;
  /** The answers under way: a clean stop waits for them. */
  running: Running;
  admin: ProjectAdmin;
  /** The deliveries under way: polled now and then, and stopped last. */
  dispatcher: Dispatcher;
  /** Cleans up after dead processes; a bounded part at each call. */
  sweep(): Promise<void>;
  /** Whether the stored secrets open, by some of them. */
  probeSecrets(): Promise<Probe>;
  /** Writes what was only counted so far: the sweep does, and a clean stop. */
  flush(): Promise<void>;
}

/** Puts the rooms together. */
export async function createApp(outside: Deps): Promise<App> {
  const bell = createBell(outside.committer);
  const deps = { ...outside, committer: bell.committer };
  const secrets = await createSecrets(deps.config.secretsKeys, deps.randomBytes);
  const directory = createDirectory(deps);
  const auth = createAuth(deps.config, directory);
  const admin = createProjectAdmin(deps, { directory, secrets });
  const commit = createCommit(deps, directory);
  const announce = createAnnounce(commit);
  const { topUsers, queue, post, holds } = openLedger(deps, { directory, announce });
  const { links, devices, passkeys } = await openLinks(deps, secrets);
  const authorizations = createAuthorizations(deps, commit);
  const running = createRunning(deps, holds);
  const forget = createForget(deps, { queue, erasers: createErasers(deps, directory) });
  const { linkFor, wayOut } = createWaysOut({ links, announce });

  const operator = createAdminGuard(deps.config, auth);
  const webhooks = openWebhooks(deps, { admin, directory, secrets });
  const { dispatcher, redelivery } = webhooks;
  bell.listen(dispatcher.wake);

  const holdSweep = createHoldSweep(deps, queue);
  const load: Load = { requests: 0, streams: () => running.streams };
  const sessions = createSessions({ deps, auth, directory });
  const ownRooms = { deps, directory, admin, post, commit, running, sessions };
  const routes = routeMap({
    chat: openChat({ deps, auth, holds, running, linkFor, announce }, secrets),
    ledger: ledgerRoutes({ deps, auth, post, wayOut }),
    users: ledgerAdminRoutes({ deps, operator, directory, post, forget, wayOut }),
    projects: projectRoutes({ deps, operator, admin, directory }),
    webhooks: webhookRoutes({ deps, auth, operator, ...webhooks }),
    connect: connectRoutes({ deps, auth, authorizations, wayOut }),
    paywall: paywallRoutes({ deps, directory, links, post, secrets, announce, devices }),
    wallets: walletRoutes({ deps, directory, links, devices, authorizations, passkeys }),
    verify: verifyRoutes({ deps, operator }),
    summaries: summaryRoutes({ deps, operator, directory }),
    exports: exportRoutes({ deps, operator, directory }),
    backup: backupRoutes({ deps, operator }),
    docs: docsRoutes({ deps, operations }),
    guides: guideRoutes(deps),
    health: healthRoutes(deps),
    metrics: openMetrics(deps, { load, running, holdSweep, dispatcher }),
    console: consoleRoutes({ ...ownRooms, ...webhooks }),
  });
  const hono = mount(deps, routes, { load, lost: createLost(deps.config) });
  const flush = () => topUsers.flush().then(() => deps.committer.flush());
  const sweep = createSweep(deps, [holdSweep, redelivery, sessions, forget, { sweep: flush }]);
  const probeSecrets = createProbe(deps.kv, secrets);
  return { fetch: hono.fetch, routes, running, admin, dispatcher, sweep, probeSecrets, flush };
}

/** Cleans up, one room after the other. */
function createSweep(
  deps: Deps,
  sweepers: readonly { sweep(): Promise<void> }[],
): () => Promise<void> {
  const trim = createTrim(deps);
  const sweepMarkers = createMarkerSweep(deps);
  const sweepReversals = createReversalSweep(deps);
  return async () => {
    for (const sweeper of sweepers) await sweeper.sweep();
    await sweepReplays(deps);
    await sweepReversals();
    await trim();
    await sweepMarkers();
  };
}

function openLedger(
  deps: Deps,
  { directory, announce }: { directory: Directory; announce: Announce },
) {
  const topUsers = createTopUsers(deps);
  const queue = createAccountQueue(deps, { directory, topUsers });
  const post = createPost(deps.kv, queue, announce);
  return { topUsers, queue, post, holds: createHolds(queue, deps.clock) };
}

function openChat(rooms: Omit<ChatRooms, "findUpstream" | "gates" | "waiters">, secrets: Secrets) {
  const { deps } = rooms;
  const findUpstream = createUpstreams(deps, secrets);
  const models = createModels(deps, findUpstream);
  const gates = createKeyGates(deps.clock);
  return chatRoutes({ ...rooms, findUpstream, gates, waiters: new Map() }, models);
}

function openMetrics(
  deps: Deps,
  { load, running, holdSweep, dispatcher }: {
    load: Load;
    running: Running;
    holdSweep: HoldSweep;
    dispatcher: Dispatcher;
  },
) {
  return metricsRoutes(deps, {
    requests: () => load.requests,
    answers: () => running.size,
    holds: holdSweep.seen,
    deliveries: dispatcher.load,
    backlog: createBacklog(deps),
  });
}

async function openLinks(deps: Deps, secrets: Secrets) {
  const { config: { baseUrl }, clock: { now }, id } = deps;
  return {
    links: await createLinks({ baseUrl, secrets, now, id }),
    devices: await createDevices(deps, secrets),
    passkeys: createPasskeys(deps, await createTokens(secrets, "passkey challenges")),
  };
}

function openWebhooks(
  deps: Deps,
  { admin, directory, secrets }: { admin: ProjectAdmin; directory: Directory; secrets: Secrets },
) {
  const { config } = deps;
  const guard = createGuard({
    allowCidrs: config.webhooks.allowCidrs,
    dev: config.dev,
    ownHost: new URL(config.baseUrl).hostname,
    resolve: deps.resolve,
    clock: deps.clock,
  });
  const subscriptions = createSubscriptions({ deps, admin, directory, secrets, guard });
  const dispatcher = createDispatcher({ deps, directory, guard, subscriptions });
  const redelivery = createRedelivery(deps, dispatcher);
  return { subscriptions, dispatcher, redelivery, reseal: createReseal({ deps, admin, secrets }) };
}
