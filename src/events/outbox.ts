import { fromBytes, fromBytesExactly, type JsonObject, toBytes } from "../base/json.ts";
import type { MakeId } from "../base/ids.ts";
import { eventKey, eventsPrefix, outboxKey } from "../store/keys.ts";
import type { Kv, Write } from "../store/kv.ts";
import { eventVersion, isBillingEvent } from "./catalogue.ts";
import type { Event, NewEvent } from "./event.ts";
import { type SubscribedPatterns, subscriptionsMatching } from "./event_patterns.ts";
import { listByTime, type Listing } from "../store/listing.ts";

/** The subscriptions that an event has yet to be delivered to. */
export interface OutboxRow {
  projectId: string;
  eventType: string;
  eventVersion: string;
  /** Ids are assigned with the event, so that repeating a step creates the same deliveries. */
  deliveries: { id: string; subscriptionId: string }[];
}

/** Decodes an outbox row. */
export function decodeOutbox(bytes: Uint8Array): OutboxRow {
  return fromBytes<OutboxRow>(bytes);
}

/** The part of a project that its events depend on. */
interface EventSource {
  id: string;
  ownerUserId: string;
  billingEvents: boolean;
  listeners: readonly SubscribedPatterns[];
}

/**
 * Adds events to the write of what caused them, so that they happen together or not at all. An
 * event without subscribers adds nothing. The write must check the project's version, which
 * guarantees that these are all subscribers.
 */
export function appendEvents(
  write: Pick<Write, "sets">,
  source: EventSource,
  { events, now, id }: { events: readonly NewEvent[]; now: number; id: MakeId },
): void {
  if (source.listeners.length === 0) return;
  for (const { type, trigger, subject, data, metadata } of events) {
    if (!source.billingEvents && isBillingEvent(type)) continue;
    const subscriptionIds = subscriptionsMatching(source.listeners, type);
    if (subscriptionIds.length === 0) continue;
    const common = { paywallId: source.id, ownerUserId: source.ownerUserId };
    const event: Event = {
      id: id("evt"),
      ...common,
      type,
      version: eventVersion,
      status: "pending",
      createdAt: new Date(now).toISOString(),
      trigger,
      subject,
      data: { ...common, ...data },
      metadata,
    };
    const row: OutboxRow = {
      projectId: source.id,
      eventType: type,
      eventVersion,
      deliveries: subscriptionIds.map((subscriptionId) => ({ id: id("dly"), subscriptionId })),
    };
    write.sets.push({ key: eventKey(source.id, event.id), value: toBytes(event) });
    write.sets.push({ key: outboxKey(event.id), value: toBytes(row) });
  }
}

/** Lists the stored events of a project, as subscribers received them. */
export function listEvents(kv: Kv, projectId: string): Listing {
  return (query) =>
    listByTime(kv, {
      prefix: eventsPrefix(projectId),
      kind: "evt",
      read({ value }) {
        if (!value) return null;
        const record = fromBytesExactly<JsonObject>(value);
        return { createdAt: Date.parse(String(record.createdAt)), record };
      },
    }, query);
}
