import { badRequest } from "../../base/errors.ts";
import type { Deps } from "../../deps.ts";
import type { EventType } from "../../events/catalogue.ts";
import { newEvent, type Subject } from "../../events/event.ts";
import { exampleOfType, subjectTypeOf } from "../../events/example.ts";
import { appendEvents, decodeOutbox } from "../../events/outbox.ts";
import { outboxKey, outboxPrefix } from "../../store/keys.ts";
import type { CommitWithEvents } from "../../projects/commit_with_events.ts";
import { type AuditActor, auditRow } from "../../projects/audit.ts";
import { emptyWrite, type Write } from "../../store/kv.ts";
import type { SubscriptionView } from "../view.ts";

/**
 * Sends an example of an event to one subscription and no other, whatever it listens to, through
 * the usual pipeline. Its metadata is `{"test": true}`. Returns the ids of the event and of its
 * delivery. Throws 400 for an inactive subscription.
 */
export async function sendTestEvent(
  { deps, commit }: { deps: Pick<Deps, "id" | "clock">; commit: CommitWithEvents },
  { id: subscriptionId, paywallId, isActive }: SubscriptionView,
  { type, by }: { type: EventType; by: AuditActor },
): Promise<{ eventId: string; deliveryId: string }> {
  if (!isActive) throw badRequest(null, "The webhook is inactive: nothing is sent to it.");
  let sent = { eventId: "", deliveryId: "" };
  await commit(paywallId, async (project) => {
    const trigger = {
      source: by.via === "console" ? "console" : "api",
      actorType: "paywall-owner",
      actorId: by.actor.id,
    } as const;
    const { id } = project;
    const subject: Subject = { type: subjectTypeOf(type), id, externalId: id };
    const about = { trigger, subject, metadata: { test: true } };
    const event = newEvent(type, about, exampleOfType(type));
    const write = emptyWrite();
    const onlyThis = { ...project, listeners: [{ subscriptionId, events: ["*"] }] };
    appendEvents(write, onlyThis, { events: [event], now: deps.clock.now(), id: deps.id });
    sent = idsIn(write);
    const auditAction = { by, action: "webhook.tested" as const, target: subscriptionId };
    write.sets.push(auditRow(deps, project.id, auditAction));
    return { write, events: [] };
  });
  return sent;
}

/** The ids of the event that a write has, and of its delivery. */
function idsIn({ sets }: Pick<Write, "sets">): { eventId: string; deliveryId: string } {
  const row = sets.find(({ key }) =>
    key.length === outboxKey("").length && key[0] === outboxPrefix[0]
  );
  const delivery = row && decodeOutbox(row.value).deliveries[0];
  return { eventId: String(row?.key[1] ?? ""), deliveryId: delivery?.id ?? "" };
}
