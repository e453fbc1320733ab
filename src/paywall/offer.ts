import { newEvent, type Trigger } from "../events/event.ts";
import type { Offer, RefusalReason } from "../ledger/refusal.ts";
import type { EmitEvents } from "../projects/commit_with_events.ts";
import type { Project } from "../projects/schema.ts";
import type { Links } from "./links.ts";
import { messageFor } from "./messages.ts";

/** Where a user goes to go on, by what stands in the way, and by whose request. */
export interface Offers {
  linkFor(
    project: Project,
    user: string,
    asked: { obstacle: RefusalReason; trigger: Trigger; amount?: string },
  ): Promise<string>;
  offer: Offer;
}

/**
 * Whoever lacks leave, or has used it up, asks a person for it; whoever lacks anything else tops
 * up.
 */
export function createOffers(
  { links, emit }: { links: Links; emit: EmitEvents },
): Offers {
  const linkFor: Offers["linkFor"] = async (project, user, { obstacle, trigger, amount }) => {
    if (obstacle !== "authorization_required" && obstacle !== "limit_reached") {
      return await links.topUpUrl(project, user, amount);
    }
    const { url: approvalUrl, requestId } = await links.createAuthorizationLink(project, user);
    await emit(project.id, [
      newEvent("authorization.requested", {
        trigger,
        subject: { type: "authorization", id: requestId, externalId: user },
      }, { externalUserId: user, walletUserId: null, requestId, approvalUrl, mode: project.mode }),
    ]);
    return approvalUrl;
  };
  return {
    linkFor,
    async offer(project, user, asked) {
      const { obstacle, balance, languages } = asked;
      const url = await linkFor(project, user, asked);
      return { url, message: messageFor(project, obstacle, { url, balance, languages }) };
    },
  };
}
