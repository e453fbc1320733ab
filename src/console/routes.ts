import type { Handler } from "../base/handler.ts";
import { auditPage, instanceAuditPage } from "./audit_page.tsx";
import { deliveriesPage } from "./deliveries.tsx";
import { deliveryPages } from "./delivery.tsx";
import { depositPages } from "./deposit.tsx";
import { type ConsoleGuard, createConsoleGuard } from "./guard.tsx";
import { keyPages } from "./keys.tsx";
import { limitPages } from "./limits.tsx";
import { livePage } from "./live.tsx";
import { messagePages } from "./messages.tsx";
import { overviewPage } from "./overview.tsx";
import { pricingPages } from "./pricing.tsx";
import { consoleHome, projectsPage } from "./projects.tsx";
import { refundPages } from "./refund.tsx";
import type { ConsoleDeps } from "./console_deps.ts";
import { settingPages } from "./settings.tsx";
import { signInRoutes } from "./sign_in.tsx";
import { userPage } from "./user.tsx";
import { usersPage } from "./users.tsx";
import { webhookPage } from "./webhook.tsx";
import { webhookActions } from "./webhook_actions.tsx";
import { webhookPages } from "./webhooks.tsx";

type PageRoutes = Record<string, { GET?: Handler; POST?: Handler; anonymousBody?: true }>;

/** Maps the console's paths to pages. Forms are posted to the path that shows them. */
export function consoleRoutes(services: ConsoleDeps): PageRoutes {
  const door = createConsoleGuard(services);
  const { show, signIn, signOut } = signInRoutes(services);
  const project = "/console/projects/:projectId";
  return {
    "/console": { GET: consoleHome(door) },
    "/console/sign-in": { anonymousBody: true, GET: show, POST: signIn },
    "/console/sign-out": { POST: signOut },
    "/console/projects": { GET: projectsPage(door, services) },
    "/console/audit": { GET: instanceAuditPage(door, services) },
    [project]: { GET: overviewPage(door, services) },
    [`${project}/live`]: { GET: livePage(door, services) },
    [`${project}/audit`]: { GET: auditPage(door, services) },
    ...moneyRoutes(project, door, services),
    ...settingRoutes(project, door, services),
    ...deliveryRoutes(project, door, services),
  };
}

function moneyRoutes(project: string, door: ConsoleGuard, services: ConsoleDeps): PageRoutes {
  const deposit = depositPages(door, services);
  const refund = refundPages(door, services);
  return {
    [`${project}/users`]: { GET: usersPage(door, services) },
    [`${project}/users/one`]: { GET: userPage(door, services) },
    [`${project}/deposit`]: { GET: deposit.ask, POST: deposit.book },
    [`${project}/refund`]: { GET: refund.ask, POST: refund.book },
  };
}

function settingRoutes(project: string, door: ConsoleGuard, services: ConsoleDeps): PageRoutes {
  const keys = keyPages(door, services);
  const pricing = pricingPages(door, services);
  const limits = limitPages(door, services);
  const messages = messagePages(door, services);
  const settings = settingPages(door, services);
  return {
    [`${project}/keys`]: { GET: keys.show, POST: keys.create },
    [`${project}/keys/:keyId/revoke`]: { GET: keys.askRevoke, POST: keys.revoke },
    [`${project}/pricing`]: { GET: pricing.show, POST: pricing.change },
    [`${project}/limits`]: { GET: limits.show, POST: limits.save },
    [`${project}/messages`]: { GET: messages.show, POST: messages.save },
    [`${project}/settings`]: { GET: settings.show, POST: settings.save },
    [`${project}/archive`]: { GET: settings.askArchive, POST: settings.archive },
  };
}

function deliveryRoutes(project: string, door: ConsoleGuard, services: ConsoleDeps): PageRoutes {
  const webhooks = webhookPages(door, services);
  const actions = webhookActions(door, services);
  const delivery = deliveryPages(door, services);
  const webhook = `${project}/webhooks/:subscriptionId`;
  return {
    [`${project}/webhooks`]: { GET: webhooks.show, POST: webhooks.create },
    [webhook]: { GET: webhookPage(door, services) },
    [`${webhook}/deactivate`]: { GET: actions.askDeactivate, POST: actions.deactivate },
    [`${webhook}/enable`]: { POST: actions.enable },
    [`${webhook}/rotate`]: { GET: actions.askRotate, POST: actions.rotate },
    [`${webhook}/test`]: { POST: actions.test },
    [`${webhook}/redeliver`]: { GET: actions.askRedeliverAll, POST: actions.redeliverAll },
    [`${project}/deliveries`]: { GET: deliveriesPage(door, services) },
    [`${project}/deliveries/:deliveryId`]: { GET: delivery.show, POST: delivery.redeliver },
  };
}
