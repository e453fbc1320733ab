import type { Handler, Incoming } from "../base/handler.ts";
import { activityPages } from "./users/activity.tsx";
import { alertPages } from "./settings/alerts.tsx";
import { createAskForKey } from "./sign_in/ask_for_key.tsx";
import { auditPages } from "./settings/audit_page.tsx";
import { deliveriesPage } from "./developers/deliveries.tsx";
import { deliveryPages } from "./developers/delivery.tsx";
import { depositPages } from "./money/deposit.tsx";
import { type ConsoleGuard, createConsoleGuard, type PageRule } from "./guard.tsx";
import { keyPages } from "./developers/keys.tsx";
import { kitPage } from "./kit.tsx";
import { limitPages } from "./settings/limits.tsx";
import { livePage } from "./developers/live.tsx";
import { messagePages } from "./settings/messages.tsx";
import { namedFormPages } from "./settings/named_form.tsx";
import { newProjectPages } from "./new_project.tsx";
import { overviewPage } from "./overview/overview.tsx";
import { paymentPages } from "./money/payments.tsx";
import { pricingPages } from "./money/pricing.tsx";
import { cataloguePage } from "./settings/catalogue.tsx";
import { catalogueFormBytesMax, catalogueRefreshPages } from "./settings/catalogue_refresh.tsx";
import { consoleHome, projectsPage } from "./projects.tsx";
import { refundPages } from "./money/refund.tsx";
import { requestPage } from "./developers/request.tsx";
import { requestPages } from "./developers/requests.tsx";
import { routeForm } from "./settings/route_form.tsx";
import { upstreamForm } from "./settings/upstream_form.tsx";
import { upstreamTestPages } from "./settings/upstream_test.tsx";
import { upstreamsPage } from "./settings/upstreams.tsx";
import type { ConsoleDeps } from "./console_deps.ts";
import { eraseUserPages } from "./users/erase_user.tsx";
import { settingPages } from "./settings/settings.tsx";
import { signInRoutes } from "./sign_in/sign_in.tsx";
import { usualUpstreamPages } from "./settings/usual_upstream.tsx";
import { userPage } from "./users/user.tsx";
import { userLimitPages } from "./users/user_limits.tsx";
import { userPages } from "./users/users.tsx";
import { walletPages } from "./users/wallets.tsx";
import { webhookPage } from "./developers/webhook.tsx";
import { webhookActions } from "./developers/webhook_actions.tsx";
import { webhookPages } from "./developers/webhooks.tsx";

type PageHandler = (incoming: Incoming, rule?: PageRule) => Promise<Response> | Response;

/** A page. Its form is posted to the path that shows it. */
interface Page {
  GET?: PageHandler;
  /** Asks for the key again where it was last entered some minutes ago. */
  POST?: PageHandler;
  /** The form needs no key: it gives no money and no access, and moves no payments and no data. */
  withoutKey?: true;
  formBytesMax?: number;
  /** What the path downloads, for the audit trail. A download needs the key, as a form does. */
  download?: string;
  strangers?: "consoleSignIn";
}

type Pages = Record<string, Page>;
type PageRoute = { GET?: Handler; POST?: Handler; strangers?: "consoleSignIn" };

/** Maps the console's paths to pages. */
export function consoleRoutes(services: ConsoleDeps): Record<string, PageRoute> {
  const guard = createConsoleGuard(services, createAskForKey(services.deps, services));
  const pages = Object.entries(allPages(guard, services));
  return Object.fromEntries(pages.map(([path, page]) => [path, routeOf(page)]));
}

function routeOf({ GET, POST, withoutKey, formBytesMax, download, strangers }: Page) {
  const limit = formBytesMax === undefined ? {} : { formBytesMax };
  const file = download === undefined ? null : { download, freshKey: true };
  const onPost = { freshKey: withoutKey !== true, ...limit, ...file };
  // The key that a download needs is posted to its own path.
  const receive = POST ?? (file ? GET : undefined);
  const route: PageRoute = strangers ? { strangers } : {};
  if (GET) route.GET = (incoming) => GET(incoming, file ?? { freshKey: false });
  if (receive) route.POST = (incoming) => receive(incoming, onPost);
  return route;
}

function allPages(guard: ConsoleGuard, services: ConsoleDeps): Pages {
  const { show, signIn, signOut } = signInRoutes(services);
  const project = "/console/projects/:projectId";
  const newProject = newProjectPages(guard, services);
  const catalogue = catalogueRefreshPages(guard, services);
  const audit = auditPages(guard, services);
  const wallets = walletPages(guard, services);
  const requests = requestPages(guard, services);
  const activity = activityPages(guard, services);
  return {
    "/console": { GET: consoleHome(guard) },
    "/console/sign-in": {
      strangers: "consoleSignIn",
      withoutKey: true,
      GET: show,
      POST: signIn,
    },
    "/console/sign-out": { withoutKey: true, POST: signOut },
    "/console/_kit": { GET: kitPage(guard, services) },
    "/console/projects/new": { GET: newProject.show, POST: newProject.create },
    "/console/projects": { GET: projectsPage(guard, services) },
    "/console/catalogue": {
      GET: catalogue.show,
      POST: catalogue.receive,
      formBytesMax: catalogueFormBytesMax,
    },
    "/console/wallets": { GET: wallets.show },
    "/console/wallets/join": { GET: wallets.showJoin, POST: wallets.join },
    "/console/audit": { GET: audit.instanceList },
    "/console/audit.csv": { GET: audit.instanceCsv, download: "audit" },
    [project]: { GET: overviewPage(guard, services) },
    [`${project}/live`]: { GET: livePage(guard, services) },
    [`${project}/audit`]: { GET: audit.list },
    [`${project}/audit.csv`]: { GET: audit.csv, download: "audit" },
    [`${project}/requests`]: { GET: requests.list },
    [`${project}/requests/one`]: { GET: requestPage(guard, services) },
    [`${project}/requests.csv`]: { GET: requests.csv, download: "requests" },
    [`${project}/activity`]: { GET: activity.list },
    [`${project}/activity.csv`]: { GET: activity.csv, download: "activity" },
    ...moneyRoutes(project, guard, services),
    ...settingRoutes(project, guard, services),
    ...deliveryRoutes(project, guard, services),
  };
}

function moneyRoutes(project: string, guard: ConsoleGuard, services: ConsoleDeps): Pages {
  const deposit = depositPages(guard, services);
  const users = userPages(guard, services);
  const refund = refundPages(guard, services);
  const userLimits = userLimitPages(guard, services);
  const eraseUser = eraseUserPages(guard, services);
  return {
    [`${project}/users`]: { GET: users.list },
    [`${project}/users.csv`]: { GET: users.csv, download: "users" },
    [`${project}/users/one`]: { GET: userPage(guard, services) },
    [`${project}/users/limits`]: { GET: userLimits.show, POST: userLimits.save },
    [`${project}/users/erase`]: { GET: eraseUser.show, POST: eraseUser.erase },
    [`${project}/deposit`]: { GET: deposit.form, POST: deposit.record },
    [`${project}/refund`]: { GET: refund.form, POST: refund.record },
  };
}

function settingRoutes(project: string, guard: ConsoleGuard, services: ConsoleDeps): Pages {
  const keys = keyPages(guard, services);
  const payments = paymentPages(guard, services);
  const pricing = pricingPages(guard, services);
  const limits = limitPages(guard, services);
  const upstream = namedFormPages(guard, services, upstreamForm);
  const route = namedFormPages(guard, services, routeForm);
  const usual = usualUpstreamPages(guard, services);
  const trial = upstreamTestPages(guard, services);
  const alerts = alertPages(guard, services);
  const messages = messagePages(guard, services);
  const settings = settingPages(guard, services);
  return {
    [`${project}/keys`]: { GET: keys.show, POST: keys.create },
    [`${project}/keys/:keyId/revoke`]: { GET: keys.confirmRevoke, POST: keys.revoke },
    [`${project}/payments`]: { GET: payments.show, POST: payments.connect },
    [`${project}/pricing`]: { GET: pricing.show, POST: pricing.change },
    [`${project}/pricing/catalogue`]: { GET: cataloguePage(guard, services) },
    [`${project}/upstreams`]: { GET: upstreamsPage(guard, services) },
    [`${project}/upstreams/one`]: { GET: upstream.show, POST: upstream.save },
    [`${project}/upstreams/usual`]: { GET: usual.show, POST: usual.save },
    [`${project}/upstreams/test`]: { GET: trial.show, POST: trial.send },
    [`${project}/upstreams/route`]: { GET: route.show, POST: route.save },
    [`${project}/limits`]: { GET: limits.show, POST: limits.save },
    [`${project}/alerts`]: { GET: alerts.show, POST: alerts.save },
    [`${project}/alerts/test`]: { withoutKey: true, POST: alerts.test },
    [`${project}/alerts/confirm`]: { withoutKey: true, POST: alerts.confirm },
    [`${project}/messages`]: { GET: messages.show, POST: messages.save },
    [`${project}/settings`]: { GET: settings.show, POST: settings.save },
    [`${project}/archive`]: { GET: settings.confirmArchive, POST: settings.archive },
  };
}

function deliveryRoutes(project: string, guard: ConsoleGuard, services: ConsoleDeps): Pages {
  const webhooks = webhookPages(guard, services);
  const actions = webhookActions(guard, services);
  const delivery = deliveryPages(guard, services);
  const webhook = `${project}/webhooks/:subscriptionId`;
  return {
    [`${project}/webhooks`]: { GET: webhooks.show, POST: webhooks.create },
    [webhook]: { GET: webhookPage(guard, services) },
    [`${webhook}/deactivate`]: { GET: actions.confirmDeactivate, POST: actions.deactivate },
    [`${webhook}/enable`]: { POST: actions.enable },
    [`${webhook}/rotate`]: { GET: actions.confirmRotate, POST: actions.rotate },
    [`${webhook}/test`]: { POST: actions.test },
    [`${webhook}/redeliver`]: { GET: actions.confirmRedeliverAll, POST: actions.redeliverAll },
    [`${project}/deliveries`]: { GET: deliveriesPage(guard, services) },
    [`${project}/deliveries/:deliveryId`]: { GET: delivery.show, POST: delivery.redeliver },
  };
}
