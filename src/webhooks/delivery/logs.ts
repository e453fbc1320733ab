import { badCursor, notFound } from "../../base/errors.ts";
import { firstIdAt, isId } from "../../base/ids.ts";
import { fromTextExactly } from "../../base/json.ts";
import { decodeUtf8 } from "../../base/utf8.ts";
import type { Deps } from "../../deps.ts";
import { freshPrefix, logKey, logPrefix } from "../../store/keys.ts";
import type { Kv } from "../../store/kv.ts";
import { filterName, type LogFilter } from "./delivery_rows.ts";
import type { Delivery, DeliveryStatus } from "../schema.ts";
import { readDeliveries, readEventTexts } from "../store.ts";
import type { LogEntry } from "../view.ts";

/** More than the first attempts that all processes together have under way. */
const freshMax = 2_000;

/** Which deliveries a listing of the log returns: of every status, or of one. */
interface LogQuery {
  filter: LogFilter;
  status: DeliveryStatus | null;
  limit: number;
  cursor: string | undefined;
}

/** Returns the page of the log after `cursor`, newest first. Throws 400 for an invalid cursor. */
export async function listLogs(
  { kv }: Pick<Deps, "kv">,
  projectId: string,
  { filter, status, limit, cursor }: LogQuery,
): Promise<{ logs: LogEntry[]; nextCursor: string | null }> {
  const before = cursor === undefined ? null : readCursor(cursor);
  const page = { before, limit: limit + 1 };
  const read = (of: DeliveryStatus) => listIds(kv, projectId, { filter, status: of, page });
  // A delivery that ends between two reads is in the later one, a redelivered one in the last.
  const lists = status === null
    ? [await read("pending"), await read("success"), await read("error"), await read("pending")]
    : [await read(status)];
  const ids = [...new Set(lists.flat())].sort().reverse();
  const shown = ids.slice(0, limit);
  const found = await readDeliveries(kv, shown.map((id) => ({ projectId, id })));
  const deliveries = found.flatMap((row) => (row ? [row.value] : []));
  const texts = await readEventTexts(kv, deliveries);
  const last = shown.at(-1);
  return {
    logs: deliveries.map((delivery, at) => viewDelivery(delivery, texts[at] ?? null)),
    nextCursor: ids.length > limit ? last ?? null : null,
  };
}

/** Reads one delivery with all its attempts, and the event as it was sent. Throws 404. */
export async function findDelivery(
  { kv }: Pick<Deps, "kv">,
  projectId: string,
  id: string,
): Promise<{ delivery: Delivery; eventText: string | null }> {
  const [found] = await readDeliveries(kv, [{ projectId, id }]);
  if (!found) throw notFound("delivery");
  const [eventText] = await readEventTexts(kv, [found.value]);
  return { delivery: found.value, eventText: eventText ?? null };
}

/** How many deliveries of each status are searched. */
const searchedMax = 100;

/** Returns the deliveries of a time whose event mentions one of the texts, newest first. */
export async function findLogs(
  { kv }: Pick<Deps, "kv">,
  projectId: string,
  { from, to, texts }: {
    /** In milliseconds since 1970. */
    from: number;
    to: number;
    texts: readonly string[];
  },
): Promise<{ logs: LogEntry[]; isWhole: boolean }> {
  const [after, before] = [firstIdAt("dly", from), firstIdAt("dly", to)];
  const page = { after, before, limit: searchedMax };
  const read = (status: DeliveryStatus) => listIds(kv, projectId, { filter: {}, status, page });
  const lists = [await read("pending"), await read("success"), await read("error")];
  const ids = [...new Set(lists.flat())].filter((id) => id >= after).sort().reverse();
  const found = await readDeliveries(kv, ids.map((id) => ({ projectId, id })));
  const deliveries = found.flatMap((row) => (row ? [row.value] : []));
  const events = await readEventTexts(kv, deliveries);
  const logs = deliveries.flatMap((delivery, at) => {
    const event = events[at] ?? "";
    return texts.some((text) => event.includes(text)) ? [viewDelivery(delivery, event)] : [];
  });
  return { logs, isWhole: lists.every((list) => list.length < searchedMax) };
}

interface Listing {
  filter: LogFilter;
  status: DeliveryStatus;
  page: { after?: string; before: string | null; limit: number };
}

/** Lists the ids of one status, newest first. */
async function listIds(
  kv: Kv,
  projectId: string,
  { filter, status, page: { after, before, limit } }: Listing,
): Promise<string[]> {
  const name = filterName(filter, status);
  const range = {
    ...(after === undefined ? {} : { start: logKey(projectId, name, after) }),
    ...(before === null ? {} : { end: logKey(projectId, name, before) }),
  };
  const prefix = logPrefix(projectId, name);
  const rows = await kv.list({ prefix, ...range, reverse: true, limit });
  const ids = rows.map(({ key }) => String(key[3]));
  if (status !== "pending") return ids;
  return [...ids, ...await listFresh(kv, projectId, { filter, before })];
}

async function listFresh(
  kv: Kv,
  projectId: string,
  { filter, before }: { filter: LogFilter; before: string | null },
): Promise<string[]> {
  const rows = await kv.list({ prefix: freshPrefix(projectId), limit: freshMax });
  return rows.flatMap(({ key, value }) => {
    const id = String(key[2]);
    const [subscriptionId, eventType] = decodeUtf8(value ?? new Uint8Array())?.split(" ") ?? [];
    const fits = (filter.subscriptionId ?? subscriptionId) === subscriptionId &&
      (filter.eventType ?? eventType) === eventType && (before === null || id < before);
    return fits ? [id] : [];
  });
}

function readCursor(cursor: string): string {
  if (isId("dly", cursor)) return cursor;
  throw badCursor();
}

/** Returns a delivery as its owner sees it. */
export function viewDelivery(delivery: Delivery, eventText: string | null): LogEntry {
  const { lastAttempt, nextRetryAt } = delivery;
  const iso = (ms: number) => new Date(ms).toISOString();
  return {
    id: delivery.id,
    subscriptionId: delivery.subscriptionId,
    status: delivery.status,
    attempts: delivery.attempts,
    lastAttemptAt: lastAttempt && iso(lastAttempt.at),
    nextRetryAt: nextRetryAt === null ? null : iso(nextRetryAt),
    responseCode: lastAttempt?.responseCode ?? null,
    responseLatencyMs: lastAttempt?.latencyMs ?? null,
    error: delivery.error,
    createdAt: iso(delivery.createdAt),
    updatedAt: iso(delivery.updatedAt),
    event: eventText === null ? null : fromTextExactly(eventText),
  };
}
