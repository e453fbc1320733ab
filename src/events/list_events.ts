import { fromBytesExactly, type JsonObject } from "../base/json.ts";
import { eventsPrefix } from "../store/keys.ts";
import type { Kv } from "../store/kv.ts";
import { listByTime, type Listing } from "../store/listing.ts";

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
