import { fromBytes, toBytes } from "../base/json.ts";
import { decodeUtf8 } from "../base/utf8.ts";
import type { PendingEvent } from "../events/outbox_notifier.ts";
import { decodeOutbox } from "../events/outbox.ts";
import {
  deliveryKey,
  duePrefix,
  eventKey,
  eventsPrefix,
  outboxKey,
  outboxPrefix,
  readyKey,
  readyPrefix,
  subscriptionHealthKey,
  subscriptionKey,
  subscriptionsPrefix,
} from "../store/keys.ts";
import type { Key, Kv, Row, Write } from "../store/kv.ts";
import { pagesUnder } from "../store/scan.ts";
import type { Delivery, Subscription, SubscriptionHealth } from "./schema.ts";

/** How many rows one listing reads at once. */
const rowsPerRead = 500;

/** A record and the version to check when it is written again. */
export interface Versioned<T> {
  value: T;
  version: string | null;
}

/** An event in the outbox; `text` is null when the event is no longer stored. */
export type WaitingEvent = Omit<PendingEvent, "text"> & { text: string | null };

/**
 * Lists events whose deliveries are not written yet, with ids before one or from one on, oldest
 * first.
 */
export async function listOutbox(
  kv: Kv,
  { limit, ...range }: { limit: number } & ({ beforeId: string } | { fromId: string }),
): Promise<WaitingEvent[]> {
  const bound = "beforeId" in range
    ? { end: outboxKey(range.beforeId) }
    : { start: outboxKey(range.fromId) };
  const rows = await kv.list({ prefix: outboxPrefix, ...bound, limit });
  const waiting = rows.flatMap(({ key, value, version }) =>
    value && version ? [{ id: String(key[1]), row: decodeOutbox(value), version }] : []
  );
  const texts = await readEventTexts(
    kv,
    waiting.map(({ id, row }) => ({ projectId: row.projectId, eventId: id })),
  );
  return waiting.map((event, at) => ({ ...event, text: texts[at] ?? null }));
}

/** Counts events with ids from before a time that still wait in the outbox, up to the limit. */
export async function countOutbox(
  kv: Kv,
  { beforeId, limit }: { beforeId: string; limit: number },
): Promise<number> {
  const rows = await kv.list({ prefix: outboxPrefix, end: outboxKey(beforeId), limit });
  return rows.length;
}

/** Reads the subscription, or null. */
export async function readSubscription(
  kv: Kv,
  projectId: string,
  subscriptionId: string,
): Promise<Versioned<Subscription> | null> {
  const { value, version } = await kv.get(subscriptionKey(projectId, subscriptionId));
  return value && { value: fromBytes<Subscription>(value), version };
}

/** Lists the newest of a project's subscriptions, at most 500, in order of creation. */
export async function listNewestSubscriptions(
  kv: Kv,
  projectId: string,
): Promise<Subscription[]> {
  const prefix = subscriptionsPrefix(projectId);
  const rows = await kv.list({ prefix, reverse: true, limit: rowsPerRead });
  return rows.flatMap(({ value }) => (value ? [fromBytes<Subscription>(value)] : [])).reverse();
}

/** Lists all of a project's subscriptions, in order of creation. */
export async function listSubscriptions(
  kv: Kv,
  projectId: string,
): Promise<Subscription[]> {
  const found: Subscription[] = [];
  for await (const rows of pagesUnder(kv, subscriptionsPrefix(projectId), rowsPerRead)) {
    found.push(...rows.flatMap(({ value }) => (value ? [fromBytes<Subscription>(value)] : [])));
  }
  return found;
}

/** Adds the subscription to the write, checked against the version that was read. */
export function putSubscription(
  write: Write,
  subscription: Subscription,
  version: string | null,
): void {
  const key = subscriptionKey(subscription.projectId, subscription.id);
  write.checks.push({ key, version });
  write.sets.push({ key, value: toBytes(subscription) });
}

/** Reads the health of these subscriptions, in their order. */
export async function readHealth(
  kv: Kv,
  named: readonly { projectId: string; id: string }[],
): Promise<SubscriptionHealth[]> {
  const keys = named.map(({ projectId, id }) => subscriptionHealthKey(projectId, id));
  const rows = keys.length > 0 ? await kv.getMany(keys) : [];
  return rows.map(({ value }) =>
    value ? fromBytes<SubscriptionHealth>(value) : { consecutiveFailures: 0, lastDeliveredAt: null }
  );
}

/** Adds the health to the write, without a check. */
export function putHealth(
  write: Write,
  { projectId, id }: { projectId: string; id: string },
  health: SubscriptionHealth,
): void {
  write.sets.push({ key: subscriptionHealthKey(projectId, id), value: toBytes(health) });
}

/** Encodes a delivery. */
export function encodeDelivery(delivery: Delivery): Uint8Array {
  return toBytes(delivery);
}

/** Decodes a delivery. */
export function decodeDelivery(bytes: Uint8Array): Delivery {
  return fromBytes<Delivery>(bytes);
}

/** Reads deliveries by id, in that order; null for those that are gone. */
export async function readDeliveries(
  kv: Kv,
  named: readonly { projectId: string; id: string }[],
): Promise<(Versioned<Delivery> | null)[]> {
  if (named.length === 0) return [];
  const rows = await kv.getMany(named.map(({ projectId, id }) => deliveryKey(projectId, id)));
  return rows.map(({ value, version }) => value && { value: decodeDelivery(value), version });
}

/** Reads the stored texts of events, in that order; null for those that are gone. */
export async function readEventTexts(
  kv: Kv,
  named: readonly { projectId: string; eventId: string }[],
): Promise<(string | null)[]> {
  if (named.length === 0) return [];
  const rows = await kv.getMany(
    named.map(({ projectId, eventId }) => eventKey(projectId, eventId)),
  );
  return rows.map(({ value }) => value && decodeUtf8(value));
}

/** Lists the oldest events of a project whose ids are before `beforeId`. */
export async function listEventsBefore(
  kv: Kv,
  projectId: string,
  { beforeId, limit }: { beforeId: string; limit: number },
): Promise<Key[]> {
  const end = eventKey(projectId, beforeId);
  const rows = await kv.list({ prefix: eventsPrefix(projectId), end, limit });
  return rows.map(({ key }) => key);
}

/** A pending delivery, and when it is due, in ms. */
export interface DueRow {
  key: Key;
  dueAt: number;
  id: string;
  projectId: string;
}

/** Selects rows in order of time: up to `now`, from `from` on and behind `after`. */
interface TimeRange {
  now: number;
  from?: number;
  after?: Key | null;
  limit: number;
}

/** Lists the deliveries that are due at a subscription until `now`, oldest first. */
export async function listDue(
  kv: Kv,
  subscriptionId: string,
  range: TimeRange,
): Promise<DueRow[]> {
  return (await listInTime(kv, duePrefix(subscriptionId), range)).map(toDue);
}

async function listInTime(
  kv: Kv,
  prefix: Key,
  { now, from, after, limit }: TimeRange,
): Promise<Row[]> {
  const start = after ? [...after, ""] : from === undefined ? null : [...prefix, from];
  return await kv.list({ prefix, ...(start ? { start } : {}), end: [...prefix, now + 1], limit });
}

/** Returns when the next delivery is due at a subscription, in ms; null for never. */
export async function nextDue(kv: Kv, subscriptionId: string): Promise<number | null> {
  const [row] = await kv.list({ prefix: duePrefix(subscriptionId), limit: 1 });
  return row ? toDue(row).dueAt : null;
}

function toDue({ key, value }: Row): DueRow {
  const projectId = value ? decodeUtf8(value) ?? "" : "";
  return { key, dueAt: Number(key[2]), id: String(key[3]), projectId };
}

/** A row that marks a subscription as having a due delivery. */
export interface ReadyRow {
  key: Key;
  version: string | null;
  subscriptionId: string;
  projectId: string;
}

/** Whether a subscription has a ready row at a time, exactly to the ms. */
export async function readReady(
  kv: Kv,
  subscriptionId: string,
  readyMs: number,
): Promise<boolean> {
  return (await kv.get(readyKey(readyMs, subscriptionId))).value !== null;
}

/** Lists ready rows up to `now`, oldest first. */
export async function listReady(kv: Kv, range: TimeRange): Promise<ReadyRow[]> {
  const rows = await listInTime(kv, readyPrefix, range);
  return rows.map(({ key, version, value }) => ({
    key,
    version,
    subscriptionId: String(key[2]),
    projectId: value ? decodeUtf8(value) ?? "" : "",
  }));
}
