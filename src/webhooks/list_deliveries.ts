import { ownDeliveriesPrefix } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import { listByTime, type Listing } from "../store/listing.ts";
import { viewDelivery } from "./logs.ts";
import { decodeDelivery } from "./store.ts";

/** The deliveries of a project that are still kept, as its log shows them, their events named. */
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
