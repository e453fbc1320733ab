// The keys of events, subscriptions and deliveries: what each holds, who writes it, how long it is
// kept.
import type { Key } from "./kv.ts";

/**
 * The deliveries that an event has yet to get. Written with its cause; removed by the dispatcher
 * when they are written, or when the only one has ended.
 */
export const outboxKey = (eventId: string): Key => ["outbox", eventId];
/** Whether a key is that of an outbox row. */
export const isOutboxKey = (key: Key): boolean => key[0] === "outbox";
/** All events whose deliveries are not written yet, in order of time. */
export const outboxPrefix: Key = ["outbox"];
/** The event as text, which never changes. Written with its cause, removed after the retention. */
export const eventKey = (projectId: string, eventId: string): Key => ["event", projectId, eventId];
/** Whether a key is that of an event. */
export const isEventKey = (key: Key): boolean => key[0] === "event";
/** All events of a project, in order of time. */
export const eventsPrefix = (projectId: string): Key => ["event", projectId];

/** A webhook subscription with its encrypted secrets. Kept forever, also when deactivated. */
export const subscriptionKey = (projectId: string, subscriptionId: string): Key => [
  "subscription",
  projectId,
  subscriptionId,
];
/** All subscriptions of a project, in order of creation. */
export const subscriptionsPrefix = (projectId: string): Key => ["subscription", projectId];
/** The recent health of a subscription's endpoint. Written with results. Kept forever. */
export const subscriptionHealthKey = (projectId: string, subscriptionId: string): Key => [
  "subscription_health",
  projectId,
  subscriptionId,
];

/** One delivery of one event to one subscription. Removed after the retention. */
export const deliveryKey = (projectId: string, deliveryId: string): Key => [
  "delivery",
  projectId,
  deliveryId,
];
/** All deliveries, those of one project together. */
export const deliveriesPrefix: Key = ["delivery"];
/** All deliveries of one project, in order of time. */
export const ownDeliveriesPrefix = (projectId: string): Key => ["delivery", projectId];
/**
 * When a pending delivery is due, in ms: for its next attempt, or at the end of the lease of the
 * running one. Exactly one row for each pending delivery.
 */
export const dueKey = (subscriptionId: string, dueMs: number, deliveryId: string): Key => [
  "due",
  subscriptionId,
  dueMs,
  deliveryId,
];
/** What is due at one subscription, in order of time. */
export const duePrefix = (subscriptionId: string): Key => ["due", subscriptionId];
/** Everything that is due, subscription by subscription. */
export const allDuePrefix: Key = ["due"];
/**
 * Marks a subscription as having something due from this ms on. Written without a check with every
 * due row; removed by the dispatcher. For each due row there is one that is not later.
 */
export const readyKey = (readyMs: number, subscriptionId: string): Key => [
  "ready",
  readyMs,
  subscriptionId,
];
/** All subscriptions with something due, in order of time. */
export const readyPrefix: Key = ["ready"];

/**
 * A delivery in its first attempt -> its subscription and event type. Removed with the attempt's
 * end.
 */
export const freshKey = (projectId: string, deliveryId: string): Key => [
  "fresh",
  projectId,
  deliveryId,
];
/** All deliveries of a project in their first attempt: as many as run at once. */
export const freshPrefix = (projectId: string): Key => ["fresh", projectId];
/** All deliveries in their first attempt. */
export const allFreshPrefix: Key = ["fresh"];
/** A delivery in the log under one combination of filters: no value. Moves with its status. */
export const logKey = (projectId: string, filter: string, deliveryId: string): Key => [
  "log",
  projectId,
  filter,
  deliveryId,
];
/** The log under one combination of filters, oldest first. */
export const logPrefix = (projectId: string, filter: string): Key => ["log", projectId, filter];
/** All logs. */
export const allLogsPrefix: Key = ["log"];

/** A redelivery of everything that failed, with its position. Removed some time after its end. */
export const redeliveryJobKey = (projectId: string, jobId: string): Key => [
  "redelivery_job",
  projectId,
  jobId,
];
/** All redeliveries, running or ended. */
export const redeliveryJobsPrefix: Key = ["redelivery_job"];
