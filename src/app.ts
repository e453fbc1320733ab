import { backupRoutes } from "./backup/routes.ts";
import { createKeyGates } from "./chat/limits.ts";
import { createModels } from "./chat/models.ts";
import { sweepReplays } from "./chat/replay.ts";
import { chatRoutes } from "./chat/routes.ts";
import { createRunning, type Running } from "./chat/running.ts";
import { createUpstreams } from "./chat/upstreams.ts";
import type { Deps } from "./deps.ts";
import { createErasers } from "./erasers.ts";
import { exportRoutes } from "./export/routes.ts";
import { healthRoutes } from "./health.ts";
import { mount, type Routes } from "./mount.ts";
import { type AccountQueue, createAccountQueue } from "./ledger/account_queue.ts";
import { ledgerAdminRoutes } from "./ledger/admin_routes.ts";
import { createForget, type Forget } from "./ledger/forget.ts";
import { createHolds } from "./ledger/hold.ts";
import { createPost } from "./ledger/post.ts";
import { ledgerRoutes } from "./ledger/routes.ts";
import { createBell } from "./events/bell.ts";
import { createHoldSweep } from "./ledger/sweep.ts";
import { createDevices } from "./paywall/device.ts";
import { createLinks } from "./paywall/link.ts";
import { createTokens } from "./paywall/token.ts";
import { createWaysOut } from "./paywall/way_out.ts";
import { paywallRoutes } from "./paywall/routes.tsx";
import { createProjectAdmin, type ProjectAdmin } from "./projects/admin.ts";
import { createAnnounce, createCommit } from "./projects/announce.ts";
import { createAuth } from "./projects/auth.ts";
import { createDirectory, type Directory } from "./projects/directory.ts";
import { createAdminGuard } from "./projects/operator.ts";
import { projectRoutes } from "./projects/routes.ts";
import { sweepMarkers } from "./store/marker_sweep.ts";
import { createSecrets, type Secrets } from "./store/secrets.ts";
import { verifyRoutes } from "./verify/routes.ts";
import { createDispatcher, type Dispatcher } from "./webhooks/dispatcher.ts";
import { createGuard } from "./webhooks/guard.ts";
import { createRedelivery, type Redelivery } from "./webhooks/redelivery.ts";
import { createReseal } from "./webhooks/reseal.ts";
import { webhookRoutes } from "./webhooks/routes.ts";
import { createSubscriptions } from "./webhooks/subscriptions.ts";
import { createAuthorizations } from "./wallets/authorizations.ts";
import { connectRoutes } from "./wallets/connect.ts";
import { createPasskeys } from "./wallets/passkeys.ts";
import { walletRoutes } from "./wallets/routes.tsx";
import { createTrim } from "./webhooks/trim.ts";

/** The whole service, without a socket. */
export interface App {
  fetch(request: Request): Response | Promise<Response>;
  /** The answers under way: a clean stop waits for them. */
  running: Running;
  admin: ProjectAdmin;
  /** The deliveries under way: polled now and then, and stopped last. */
  dispatcher: Dispatcher;
  /** Cleans up after dead processes; a bounded part at each call. */
  sweep(): Promise<void>;
}

/** Puts the rooms together. */
export async function createApp(outside: Deps): Promise<App> {
  const bell = createBell(outside.committer);
  const deps = { ...outside, committer: bell.committer };
  const { config, clock } = deps;
  const secrets = await createSecrets(config.secretsKeys, deps.randomBytes);
  const directory = createDirectory(deps);
  const auth = createAuth(config, directory);
  const admin = createProjectAdmin(deps, { directory, secrets });
  const queue = createAccountQueue(deps, directory);
  const commit = createCommit(deps, directory);
  const announce = createAnnounce(commit);
  const post = createPost(deps.kv, queue, announce);
  const holds = createHolds(queue, clock);
  const { links, devices, passkeys } = await openLinks(deps, secrets);
  const authorizations = createAuthorizations(deps, commit);
  const running = createRunning(deps, holds);
  const findUpstream = createUpstreams(deps, secrets);
  const forget = createForget(deps, { queue, erasers: createErasers(deps, directory) });
  const { linkFor, wayOut } = createWaysOut({ links, announce });

  const operator = createAdminGuard(config, auth);
  const webhooks = openWebhooks(deps, { admin, directory, secrets });
  const { dispatcher, redelivery } = webhooks;
  bell.listen(dispatcher.wake);

  const gates = createKeyGates(clock);
  const chatRooms = { deps, auth, holds, running, findUpstream, linkFor, announce, gates };
  const hono = mount(
    deps,
    routeMap({
      chat: chatRoutes(chatRooms, createModels(deps, findUpstream)),
      ledger: ledgerRoutes({ deps, auth, post, wayOut }),
      users: ledgerAdminRoutes({ deps, operator, directory, post, forget, wayOut }),
      projects: projectRoutes({ deps, operator, admin, directory }),
      webhooks: webhookRoutes({ deps, auth, operator, ...webhooks }),
      connect: connectRoutes({ deps, auth, authorizations, wayOut }),
      paywall: paywallRoutes({ deps, directory, links, post, secrets, announce, devices }),
      wallets: walletRoutes({ deps, directory, links, devices, authorizations, passkeys }),
      verify: verifyRoutes({ deps, operator }),
      exports: exportRoutes({ deps, operator, directory }),
      backup: backupRoutes({ deps, operator }),
      health: healthRoutes(deps),
    }),
    running,
  );
  const sweep = createSweep(deps, { queue, redelivery, forget });
  return { fetch: hono.fetch, running, admin, dispatcher, sweep };
}

function createSweep(
  deps: Deps,
  { queue, redelivery, forget }: { queue: AccountQueue; redelivery: Redelivery; forget: Forget },
): () => Promise<void> {
  const sweepHolds = createHoldSweep(deps, queue);
  const trim = createTrim(deps);
  return async () => {
    await sweepHolds();
    await sweepReplays(deps);
    await redelivery.sweep();
    await forget.sweep();
    await trim();
    await sweepMarkers(deps);
  };
}

async function openLinks(deps: Deps, secrets: Secrets) {
  const { config: { baseUrl }, clock: { now }, id } = deps;
  return {
    links: await createLinks({ baseUrl, secrets, now, id }),
    devices: await createDevices({ baseUrl, secrets, now }),
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
  });
  const subscriptions = createSubscriptions({ deps, admin, secrets, guard });
  const dispatcher = createDispatcher({ deps, directory, guard, subscriptions });
  const redelivery = createRedelivery(deps, dispatcher);
  return { subscriptions, dispatcher, redelivery, reseal: createReseal({ deps, admin, secrets }) };
}

interface Rooms {
  webhooks: ReturnType<typeof webhookRoutes>;
  chat: ReturnType<typeof chatRoutes>;
  ledger: ReturnType<typeof ledgerRoutes>;
  users: ReturnType<typeof ledgerAdminRoutes>;
  projects: ReturnType<typeof projectRoutes>;
  connect: ReturnType<typeof connectRoutes>;
  paywall: ReturnType<typeof paywallRoutes>;
  wallets: ReturnType<typeof walletRoutes>;
  verify: ReturnType<typeof verifyRoutes>;
  exports: ReturnType<typeof exportRoutes>;
  backup: ReturnType<typeof backupRoutes>;
  health: ReturnType<typeof healthRoutes>;
}

/** The whole outside of the service: which address leads into which room. */
function routeMap(rooms: Rooms): Routes {
  return { ...callerRoutes(rooms), ...operatorRoutes(rooms), ...publicRoutes(rooms) };
}

/** What a project's key opens. */
function callerRoutes({ connect, chat, ledger, webhooks }: Rooms): Routes {
  return {
    "/v1/chat/completions": { POST: chat.complete },
    "/v1/:user/chat/completions": { POST: chat.complete },
    "/v1/models": { GET: chat.models },
    "/v1/models/*": { GET: chat.model },
    "/v1/:user/models": { GET: chat.models },

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
    "/v1/webhooks/subscriptions/:subscriptionId": {
      GET: webhooks.getSubscription,
      DELETE: webhooks.deactivateSubscription,
    },
    "/v1/webhooks/logs": { GET: webhooks.logs },
  };
}

/** What the operator's key opens. */
function operatorRoutes(rooms: Rooms): Routes {
  const { projects, users, webhooks, verify, exports, backup } = rooms;
  return {
    "/v1/admin/verify": { GET: verify.verify },
    "/v1/admin/backup": { GET: backup.backup },
    "/v1/admin/projects/:projectId/export": { GET: exports.exportRecords },
    "/v1/admin/projects": { GET: projects.listProjects, POST: projects.createProject },
    "/v1/admin/projects/:projectId": { GET: projects.getProject, PATCH: projects.updateProject },
    "/v1/admin/secrets/reseal": { POST: webhooks.resealSecrets },
    "/v1/admin/projects/:projectId/archive": { POST: projects.archiveProject },
    "/v1/admin/projects/:projectId/keys": { GET: projects.listKeys, POST: projects.createKey },
    "/v1/admin/projects/:projectId/keys/:keyId": { DELETE: projects.revokeKey },
    "/v1/admin/projects/:projectId/users": { GET: users.listUsers },
    "/v1/admin/projects/:projectId/users/:user": { GET: users.getUser },
    "/v1/admin/projects/:projectId/users/:user/activities": { GET: users.activities },
    "/v1/admin/projects/:projectId/users/:user/deposit": { POST: users.deposit },
    "/v1/admin/projects/:projectId/users/:user/charge": { POST: users.charge },
    "/v1/admin/projects/:projectId/users/:user/refund": { POST: users.refund },
    "/v1/admin/projects/:projectId/users/:user/forget": { POST: users.forget },
    "/v1/admin/projects/:projectId/subscriptions/:subscriptionId": {
      PATCH: webhooks.operateSubscription,
    },
    "/v1/admin/projects/:projectId/subscriptions/:subscriptionId/redeliver": {
      POST: webhooks.redeliverAll,
    },
    "/v1/admin/projects/:projectId/deliveries/:deliveryId/redeliver": { POST: webhooks.redeliver },
    "/v1/admin/projects/:projectId/redeliveries/:jobId": { GET: webhooks.getRedelivery },
  };
}

/** What people's links open, what Stripe calls, and what probes ask. */
function publicRoutes({ paywall, wallets, health }: Rooms): Routes {
  return {
    "/topup/:token": { GET: paywall.showTopUp, POST: paywall.startTopUp },
    "/authorize/:token": { GET: wallets.showAuthorize, POST: wallets.decideAuthorize },
    "/wallet": { GET: wallets.showWallet, POST: wallets.changeWallet },
    "/wallet/passkeys/options": { POST: wallets.passkeyOptions },
    "/wallet/passkeys": { POST: wallets.addPasskey },
    "/wallet/sign-in/options": { POST: wallets.signInOptions },
    "/wallet/sign-in": { POST: wallets.signIn },
    "/v1/stripe": { POST: paywall.stripeWebhook },
    "/v1/stripe/:projectId": { POST: paywall.stripeWebhook },
    "/healthz": { GET: health.healthz },
    "/readyz": { GET: health.readyz },
  };
}
