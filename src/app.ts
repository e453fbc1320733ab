import { createModels } from "./chat/models.ts";
import { sweepReplays } from "./chat/replay.ts";
import { chatRoutes } from "./chat/routes.ts";
import { createRunning, type Running } from "./chat/running.ts";
import { createUpstreams } from "./chat/upstreams.ts";
import type { Deps } from "./deps.ts";
import { healthRoutes } from "./health.ts";
import { mount, type Routes } from "./mount.ts";
import { createAccountQueue } from "./ledger/account_queue.ts";
import { createHolds } from "./ledger/hold.ts";
import { createPost } from "./ledger/post.ts";
import { ledgerRoutes, type TopUpOffer } from "./ledger/routes.ts";
import { createBell } from "./events/bell.ts";
import { createHoldSweep } from "./ledger/sweep.ts";
import { connectRoutes } from "./paywall/connect.ts";
import { createLinks } from "./paywall/link.ts";
import { messageFor } from "./paywall/message.ts";
import { paywallRoutes } from "./paywall/routes.tsx";
import { createProjectAdmin, type ProjectAdmin } from "./projects/admin.ts";
import { createAnnounce } from "./projects/announce.ts";
import { createAuth } from "./projects/auth.ts";
import { createDirectory, type Directory } from "./projects/directory.ts";
import { createAdminGuard } from "./projects/operator.ts";
import { projectRoutes } from "./projects/routes.ts";
import type { Project } from "./projects/schema.ts";
import { sweepMarkers } from "./store/marker_sweep.ts";
import { createSecrets, type Secrets } from "./store/secrets.ts";
import { createDispatcher, type Dispatcher } from "./webhooks/dispatcher.ts";
import { createGuard } from "./webhooks/guard.ts";
import { createRedelivery } from "./webhooks/redelivery.ts";
import { webhookRoutes } from "./webhooks/routes.ts";
import { createSubscriptions } from "./webhooks/subscriptions.ts";
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
  const secrets = await createSecrets(config.secretsKey, deps.randomBytes);
  const directory = createDirectory(deps);
  const auth = createAuth(config, directory);
  const admin = createProjectAdmin(deps, { directory, secrets });
  const queue = createAccountQueue(deps, directory);
  const announce = createAnnounce(deps, directory);
  const post = createPost(deps.kv, queue, announce);
  const holds = createHolds(queue, clock);
  const links = await createLinks({ baseUrl: config.baseUrl, secrets, now: clock.now });
  const running = createRunning(deps, holds);
  const findUpstream = createUpstreams(deps, secrets);
  const topUpUrl = (project: Project, user: string) => links.topUp(project, user);
  const offerTopUp: TopUpOffer = async (project, user, { amount, balance, languages }) => {
    const url = await links.topUp(project, user, amount);
    const context = { url, balance, languages };
    return { url, message: messageFor(project, "insufficient_funds", context) };
  };

  const operator = createAdminGuard(config, auth);
  const { subscriptions, dispatcher, redelivery } = openWebhooks(deps, {
    admin,
    directory,
    secrets,
  });
  bell.listen(dispatcher.wake);

  const chatRooms = { deps, auth, holds, running, findUpstream, topUpUrl, announce };
  const hono = mount(
    deps,
    routeMap({
      chat: chatRoutes(chatRooms, createModels(deps, findUpstream)),
      ledger: ledgerRoutes({ deps, auth, post, offerTopUp }),
      projects: projectRoutes({ deps, operator, admin, directory }),
      webhooks: webhookRoutes({ deps, auth, operator, subscriptions, redelivery }),
      connect: connectRoutes({ auth }),
      paywall: paywallRoutes({ deps, directory, links, post, secrets, announce }),
      health: healthRoutes(deps),
    }),
  );
  const sweepHolds = createHoldSweep(deps, queue);
  const trim = createTrim(deps);
  return {
    fetch: hono.fetch,
    running,
    admin,
    dispatcher,
    async sweep() {
      await sweepHolds();
      await sweepReplays(deps);
      await redelivery.sweep();
      await trim();
      await sweepMarkers(deps);
    },
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
  return { subscriptions, dispatcher, redelivery: createRedelivery(deps, dispatcher) };
}

interface Rooms {
  webhooks: ReturnType<typeof webhookRoutes>;
  chat: ReturnType<typeof chatRoutes>;
  ledger: ReturnType<typeof ledgerRoutes>;
  projects: ReturnType<typeof projectRoutes>;
  connect: ReturnType<typeof connectRoutes>;
  paywall: ReturnType<typeof paywallRoutes>;
  health: ReturnType<typeof healthRoutes>;
}

/** The whole outside of the service: which address leads into which room. */
function routeMap({ connect, chat, ledger, webhooks, projects, paywall, health }: Rooms): Routes {
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

    "/v1/admin/projects": { GET: projects.listProjects, POST: projects.createProject },
    "/v1/admin/projects/:projectId": { GET: projects.getProject, PATCH: projects.updateProject },
    "/v1/admin/projects/:projectId/archive": { POST: projects.archiveProject },
    "/v1/admin/projects/:projectId/keys": { GET: projects.listKeys, POST: projects.createKey },
    "/v1/admin/projects/:projectId/keys/:keyId": { DELETE: projects.revokeKey },
    "/v1/admin/projects/:projectId/subscriptions/:subscriptionId": {
      PATCH: webhooks.operateSubscription,
    },
    "/v1/admin/projects/:projectId/subscriptions/:subscriptionId/redeliver": {
      POST: webhooks.redeliverAll,
    },
    "/v1/admin/projects/:projectId/deliveries/:deliveryId/redeliver": { POST: webhooks.redeliver },
    "/v1/admin/projects/:projectId/redeliveries/:jobId": { GET: webhooks.getRedelivery },

    "/topup/:token": { GET: paywall.showTopUp, POST: paywall.startTopUp },
    "/v1/stripe/:projectId": { POST: paywall.stripeWebhook },
    "/healthz": { GET: health.healthz },
    "/readyz": { GET: health.readyz },
  };
}
