import type { Handler } from "../base/handler.ts";
import { auditPage, instanceAuditPage } from "./audit.tsx";
import { depositPages } from "./deposit.tsx";
import { createDoor } from "./door.tsx";
import { keyPages } from "./keys.tsx";
import { limitPages } from "./limits.tsx";
import { livePage } from "./live.tsx";
import { overviewPage } from "./overview.tsx";
import { pricingPages } from "./pricing.tsx";
import { home, projectsPage } from "./projects.tsx";
import { refundPages } from "./refund.tsx";
import type { ConsoleRooms } from "./rooms.ts";
import { settingPages } from "./settings.tsx";
import { signInRoutes } from "./sign_in.tsx";
import { userPage } from "./user.tsx";
import { usersPage } from "./users.tsx";

/** Which page is where. Forms are posted to the address that shows them. */
export function consoleRoutes(
  rooms: ConsoleRooms,
): Record<string, { GET?: Handler; POST?: Handler }> {
  const door = createDoor(rooms);
  const { show, signIn, signOut } = signInRoutes(rooms);
  const project = "/console/projects/:projectId";
  const deposit = depositPages(door, rooms);
  const refund = refundPages(door, rooms);
  const keys = keyPages(door, rooms);
  const pricing = pricingPages(door, rooms);
  const limits = limitPages(door, rooms);
  const settings = settingPages(door, rooms);
  return {
    "/console": { GET: home(door) },
    "/console/sign-in": { GET: show, POST: signIn },
    "/console/sign-out": { POST: signOut },
    "/console/projects": { GET: projectsPage(door, rooms) },
    "/console/audit": { GET: instanceAuditPage(door, rooms) },
    [project]: { GET: overviewPage(door, rooms) },
    [`${project}/live`]: { GET: livePage(door, rooms) },
    [`${project}/users`]: { GET: usersPage(door, rooms) },
    [`${project}/users/one`]: { GET: userPage(door, rooms) },
    [`${project}/deposit`]: { GET: deposit.ask, POST: deposit.book },
    [`${project}/refund`]: { GET: refund.ask, POST: refund.book },
    [`${project}/keys`]: { GET: keys.show, POST: keys.create },
    [`${project}/keys/:keyId/revoke`]: { GET: keys.askRevoke, POST: keys.revoke },
    [`${project}/pricing`]: { GET: pricing.show, POST: pricing.change },
    [`${project}/limits`]: { GET: limits.show, POST: limits.save },
    [`${project}/settings`]: { GET: settings.show, POST: settings.save },
    [`${project}/archive`]: { GET: settings.askArchive, POST: settings.archive },
    [`${project}/audit`]: { GET: auditPage(door, rooms) },
  };
}
