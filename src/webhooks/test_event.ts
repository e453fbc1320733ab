import { badRequest } from "../base/errors.ts";
import type { Deps } from "../deps.ts";
import { newEvent } from "../events/event.ts";
import { appendEvents } from "../events/outbox.ts";
import type { CommitWithEvents } from "../projects/commit_with_events.ts";
import { type AuditActor, auditRow } from "../projects/audit.ts";
import { emptyWrite } from "../store/kv.ts";
import type { SubscriptionView } from "./view.ts";

/**
 * Sends an event to one subscription and no other, whatever it listens to, through the usual
 * pipeline. It is `updated` without changed fields, and its metadata is `{"test": true}`. Throws
 * 400 for an inactive subscription.
 */
export async function sendTestEvent(
  { deps, commit }: { deps: Pick<Deps, "id" | "clock">; commit: CommitWithEvents },
  { id: subscriptionId, paywallId, isActive }: SubscriptionView,
  by: AuditActor,
): Promise<void> {
  if (!isActive) throw badRequest(null, "The webhook is inactive: nothing is sent to it.");
  await commit(paywallId, async (project) => {
    const trigger = {
      source: by.via,
      actorType: "paywall-owner",
      actorId: by.actor.id,
    } as const;
    const { id } = project;
    const subject = { type: "project", id, externalId: id } as const;
    const about = { trigger, subject, metadata: { test: true } };
    const event = newEvent("updated", about, { changedFields: [], summarySections: [] });
    const write = emptyWrite();
    const onlyThis = { ...project, listeners: [{ subscriptionId, events: ["*"] }] };
    appendEvents(write, onlyThis, { events: [event], now: deps.clock.now(), id: deps.id });
    const deed = { by, action: "webhook.tested" as const, target: subscriptionId };
    write.sets.push(auditRow(deps, project.id, deed));
    return { write, events: [] };
  });
}
