import type { Deps } from "../deps.ts";
import type { Directory } from "../projects/directory.ts";
import type { Guard } from "./guard.ts";
import type { Subscriptions } from "./subscriptions.ts";

/** What the dispatcher stands on. */
export interface DispatcherRooms {
  deps: Deps;
  directory: Directory;
  guard: Guard;
  subscriptions: Pick<Subscriptions, "open">;
}
