import type { Holders } from "../../src/base/holders.ts";
import { type AccountQueue, createAccountQueue } from "../../src/ledger/account_queue.ts";
import { createProjectCache } from "../../src/projects/project_cache.ts";
import { createTopUsers } from "../../src/summaries/top_users.ts";
import type { World } from "./world.ts";

/** The holders as a process knows them that has met no other one. */
export const noOthers: Holders = {
  own: "prc_own",
  isGone: () => false,
  aheadMs: () => 0,
  announce: () => null,
};

/** The account queue of such a process, on a world's store. */
export function queueOf({ deps }: Pick<World, "deps">): AccountQueue {
  const services = { projectCache: createProjectCache(deps), topUsers: createTopUsers(deps) };
  return createAccountQueue({ ...deps, holders: noOthers }, services);
}
