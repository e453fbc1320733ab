import { type NewEvent, newEvent, type Trigger } from "../events/event.ts";
import { type RefusalReason, refusalReasons } from "../base/refusal_reasons.ts";
import type { Offer } from "../ledger/offer.ts";
import type { EmitEvents } from "../projects/commit_with_events.ts";
import type { Project } from "../projects/schema.ts";
import type { Links } from "./links.ts";
import { messageFor } from "./messages.ts";

/** Links and messages for refused users, by the reason of the refusal. */
export interface Offers {
  /** The link, and the events that its sender emits. */
  linkFor(
    project: Project,
    user: string,
    refused: { reason: RefusalReason; trigger: Trigger; amount?: string },
  ): Promise<{ url: string; events: NewEvent[] }>;
  offer: Offer;
}

/**
 * A user without authorization, or beyond a wallet's daily cap, gets an authorization link; every
 * other refused user gets a top-up link.
 */
export function createOffers(
  { links, emit }: { links: Links; emit: EmitEvents },
): Offers {
  const linkFor: Offers["linkFor"] = async (project, user, { reason, trigger, amount }) => {
    if (reason !== "authorization_required" && reason !== "daily_cap") {
      return { url: await links.topUpUrl(project, user, amount), events: [] };
    }
    const { url: approvalUrl, requestId, isStored } = await links.createAuthorizationLink(
      project,
      user,
    );
    if (!isStored) return { url: approvalUrl, events: [] };
    const requested = newEvent("authorization.requested", {
      trigger,
      subject: { type: "authorization", id: requestId, externalId: user },
    }, { externalUserId: user, walletUserId: null, requestId, approvalUrl, mode: project.mode });
    return { url: approvalUrl, events: [requested] };
  };
  return {
    linkFor,
    async offer(project, user, refused) {
      const { reason, balance, languages } = refused;
      const { code } = refusalReasons[reason];
      const { url, events } = await linkFor(project, user, refused);
      if (events.length > 0) await emit(project.id, events);
      return { url, message: messageFor(project, code, { url, balance, languages }) };
    },
  };
}
