import type { Handler } from "../base/handler.ts";
import { auditPage, instanceAuditPage } from "./audit.tsx";
import { deliveriesPage } from "./deliveries.tsx";
import { deliveryPages } from "./delivery.tsx";
import { depositPages } from "./deposit.tsx";
import { createDoor, type Door } from "./door.tsx";
import { keyPages } from "./keys.tsx";
import { limitPages } from "./limits.tsx";
import { livePage } from "./live.tsx";
import { messagePages } from "./messages.tsx";
import { overviewPage } from "./overview.tsx";
import { pricingPages } from "./pricing.tsx";
import { home, projectsPage } from "./projects.tsx";
import { refundPages } from "./refund.tsx";
import type { ConsoleRooms } from "./rooms.ts";
import { settingPages } from "./settings.tsx";
import { signInRoutes } from "./sign_in.tsx";
import { userPage } from "./user.tsx";
import { usersPage } from "./users.tsx";
import { webhookPage } from "./webhook.tsx";
import { webhookActions } from "./webhook_actions.tsx";
import { webhookPages } from "./webhooks.tsx";

type PageRoutes = Record<string, { GET?: Handler; POST?: Handler }>;

/** Which page is where. Forms are posted to the address that shows them. */
export function consoleRoutes(rooms: ConsoleRooms): PageRoutes {
  const door = createDoor(rooms);
  const { show, signIn, signOut } = signInRoutes(rooms);
  const project = "/console/projects/:projectId";
  return {
    "/console": { GET: home(door) },
    "/console/sign-in": { GET: show, POST: signIn },
    "/console/sign-out": { POST: signOut },
    "/console/projects": { GET: projectsPage(door, rooms) },
    "/console/audit": { GET: instanceAuditPage(door, rooms) },
    [project]: { GET: overviewPage(door, rooms) },
    [`${project}/live`]: { GET: livePage(door, rooms) },
    [`${project}/audit`]: { GET: auditPage(door, rooms) },
    ...moneyRoutes(project, door, rooms),
    ...settingRoutes(project, door, rooms),
    ...deliveryRoutes(project, door, rooms),
  };
}

function moneyRoutes(project: string, door: Door, rooms: ConsoleRooms): PageRoutes {
  const deposit = depositPages(door, rooms);
  const refund = refundPages(door, rooms);
  return {
    [`${project}/users`]: { GET: usersPage(door, rooms) },
    [`${project}/users/one`]: { GET: userPage(door, rooms) },
    [`${project}/deposit`]: { GET: deposit.ask, POST: deposit.book },
    [`${project}/refund`]: { GET: refund.ask, POST: refund.book },
  };
}

function settingRoutes(project: string, door: Door, rooms: ConsoleRooms): PageRoutes {
  const keys = keyPages(door, rooms);
  const pricing = pricingPages(door, rooms);
  const limits = limitPages(door, rooms);
  const messages = messagePages(door, rooms);
  const settings = settingPages(door, rooms);
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

function deliveryRoutes(project: string, door: Door, rooms: ConsoleRooms): PageRoutes {
  const webhooks = webhookPages(door, rooms);
  const actions = webhookActions(door, rooms);
  const delivery = deliveryPages(door, rooms);
  const webhook = `${project}/webhooks/:subscriptionId`;
  return {
    [`${project}/webhooks`]: { GET: webhooks.show, POST: webhooks.create },
    [webhook]: { GET: webhookPage(door, rooms) },
    [`${webhook}/deactivate`]: { GET: actions.askDeactivate, POST: actions.deactivate },
    [`${webhook}/enable`]: { POST: actions.enable },
    [`${webhook}/rotate`]: { GET: actions.askRotate, POST: actions.rotate },
    [`${webhook}/test`]: { POST: actions.test },
    [`${webhook}/redeliver`]: { GET: actions.askRedeliverAll, POST: actions.redeliverAll },
    [`${project}/deliveries`]: { GET: deliveriesPage(door, rooms) },
    [`${project}/deliveries/:deliveryId`]: { GET: delivery.show, POST: delivery.redeliver },
  };
}
