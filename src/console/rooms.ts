import type { Running } from "../chat/running.ts";
import type { Deps } from "../deps.ts";
import type { Post } from "../ledger/post.ts";
import type { ProjectAdmin } from "../projects/admin.ts";
import type { Commit } from "../projects/announce.ts";
import type { Directory } from "../projects/directory.ts";
import type { Dispatcher } from "../webhooks/dispatcher.ts";
import type { Redelivery } from "../webhooks/redelivery.ts";
import type { Subscriptions } from "../webhooks/subscriptions.ts";
import type { Sessions } from "./session.ts";

/** What the console stands on. */
export interface ConsoleRooms {
  deps: Deps;
  directory: Directory;
  admin: ProjectAdmin;
  post: Post;
  commit: Commit;
  running: Running;
  subscriptions: Subscriptions;
  redelivery: Redelivery;
  dispatcher: Pick<Dispatcher, "stateOf">;
  sessions: Sessions;
}
