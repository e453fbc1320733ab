import { ownDeliveriesPrefix } from "../../store/keys.ts";
import type { Kv } from "../../store/kv.ts";
import { listByTime, type Listing } from "../../store/listing.ts";
import { viewDelivery } from "./logs.ts";
import { decodeDelivery } from "../store.ts";

/**
 * Lists all stored deliveries of a project as its log shows them, with the names of their events.
 */
export function listDeliveries(kv: Kv, projectId: string): Listing {
  return (query) =>
    listByTime(kv, {
      prefix: ownDeliveriesPrefix(projectId),
      kind: "dly",
      read({ value }) {
        if (!value) return null;
        const delivery = decodeDelivery(value);
        const { eventId, eventType, createdAt } = delivery;
        const { event: _, ...entry } = viewDelivery(delivery, null);
        return { createdAt, record: { ...entry, eventId, eventType } };
      },
    }, query);
}
