import { badRequest } from "../base/errors.ts";
import type { Json } from "../base/json.ts";
import type { Deps } from "../deps.ts";
import { logKey, logPrefix } from "../store/keys.ts";
import { filterName, type LogFilter } from "./log_index.ts";
import type { Delivery } from "./schema.ts";
import { readDeliveries, readEventTexts } from "./store.ts";

/** A delivery as it stands in the log, with the event as it was. */
export type LogEntry = Record<string, Json>;

/** The page of the log after `cursor`, newest first. Throws 400 for a cursor that is none. */
export async function listLogs(
  { kv }: Pick<Deps, "kv">,
  projectId: string,
  { filter, limit, cursor }: { filter: LogFilter; limit: number; cursor: string | undefined },
): Promise<{ logs: LogEntry[]; nextCursor: string | null }> {
  const name = filterName(filter);
  const before = cursor === undefined ? {} : { end: logKey(projectId, name, readCursor(cursor)) };
  const rows = await kv.list({
    prefix: logPrefix(projectId, name),
    ...before,
    reverse: true,
    limit: limit + 1,
  });
  const ids = rows.slice(0, limit).map(({ key }) => ({ projectId, id: String(key[3]) }));
  const found = await readDeliveries(kv, ids);
  const deliveries = found.flatMap((row) => (row ? [row.value] : []));
  const texts = await readEventTexts(kv, deliveries);
  const last = ids.at(-1);
  return {
    logs: deliveries.map((delivery, at) => viewDelivery(delivery, texts[at] ?? null)),
    nextCursor: rows.length > limit && last ? btoa(last.id) : null,
  };
}

function readCursor(cursor: string): string {
  const id = /^[A-Za-z0-9+/=]{1,64}$/.test(cursor) ? decode(cursor) : "";
  if (/^dlv_[0-9A-Z]{26}$/.test(id)) return id;
  throw badRequest("cursor", "'cursor' is not valid.");
}

function decode(text: string): string {
  try {
    return atob(text);
  } catch {
    return "";
  }
}

/** A delivery as its owner sees it. */
export function viewDelivery(delivery: Delivery, eventText: string | null): LogEntry {
  const { lastAttempt, nextRetryAt } = delivery;
  const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    id: delivery.id,
    subscriptionId: delivery.subscriptionId,
    status: delivery.status,
    attempts: delivery.attempts,
    lastAttemptAt: iso(lastAttempt?.at ?? null),
    nextRetryAt: iso(nextRetryAt),
    responseCode: lastAttempt?.responseCode ?? null,
    responseLatencyMs: lastAttempt?.latencyMs ?? null,
    error: delivery.error,
    createdAt: iso(delivery.createdAt),
    updatedAt: iso(delivery.updatedAt),
    event: eventText === null ? null : JSON.parse(eventText),
  };
}
