import type { Handler } from "../base/handler.ts";
import { auditPage, instanceAuditPage } from "./audit.tsx";
import { createDoor } from "./door.tsx";
import { home, projectsPage } from "./projects.tsx";
import type { ConsoleRooms } from "./rooms.ts";
import { signInRoutes } from "./sign_in.tsx";

/** Which page is where. Forms are posted to the address that shows them. */
export function consoleRoutes(
  rooms: ConsoleRooms,
): Record<string, { GET?: Handler; POST?: Handler }> {
  const door = createDoor(rooms);
  const { show, signIn, signOut } = signInRoutes(rooms);
  const project = "/console/projects/:projectId";
  return {
    "/console": { GET: home(door) },
    "/console/sign-in": { GET: show, POST: signIn },
    "/console/sign-out": { POST: signOut },
    "/console/projects": { GET: projectsPage(door, rooms) },
    "/console/audit": { GET: instanceAuditPage(door, rooms) },
    [`${project}/audit`]: { GET: auditPage(door, rooms) },
  };
}
