import type { Clock } from "../deps.ts";
import type { Kv } from "../store/kv.ts";
import type { Scan } from "../store/scan.ts";
import { scanDeliveries } from "./verify_deliveries.ts";
import { scanOutbox } from "./verify_outbox.ts";
import { scanPointers } from "./verify_rows.ts";

/** All that webhooks keep: the outbox, deliveries, and every row that leads to one. */
export function scanWebhooks(deps: { kv: Kv; clock: Clock }): Scan[] {
  return [scanOutbox(deps), scanDeliveries(deps), ...scanPointers(deps)];
}
