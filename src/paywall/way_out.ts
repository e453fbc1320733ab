import { newEvent, type Trigger } from "../events/event.ts";
import type { Obstacle } from "../ledger/obstacle.ts";
import type { WayOut } from "../ledger/way_out.ts";
import type { Announce } from "../projects/announce.ts";
import type { Project } from "../projects/schema.ts";
import type { Links } from "./link.ts";
import { messageFor } from "./message.ts";

/** Where a user goes to go on, by what stands in the way, and by whose request. */
export interface WaysOut {
  linkFor(
    project: Project,
    user: string,
    asked: { obstacle: Obstacle; trigger: Trigger; amount?: string },
  ): Promise<string>;
  wayOut: WayOut;
}

/** Whoever lacks leave, or has used it up, asks a person for it; whoever lacks anything else tops up. */
export function createWaysOut(
  { links, announce }: { links: Links; announce: Announce },
): WaysOut {
  const linkFor: WaysOut["linkFor"] = async (project, user, { obstacle, trigger, amount }) => {
    if (obstacle !== "authorization_required" && obstacle !== "limit_reached") {
      return await links.topUp(project, user, amount);
    }
    const { url: approvalUrl, requestId } = await links.authorize(project, user);
    await announce(project.id, [
      newEvent("authorization.requested", {
        trigger,
        subject: { type: "authorization", id: requestId, externalId: user },
      }, { externalUserId: user, walletUserId: null, requestId, approvalUrl, mode: project.mode }),
    ]);
    return approvalUrl;
  };
  return {
    linkFor,
    async wayOut(project, user, asked) {
      const { obstacle, balance, languages } = asked;
      const url = await linkFor(project, user, asked);
      return { url, message: messageFor(project, obstacle, { url, balance, languages }) };
    },
  };
}
