import type { Delivery } from "../schema.ts";
import type { SendResult } from "./send.ts";

/** When a delivery is retried, and how often. */
interface RetryPolicy {
  attemptsMax: number;
  backoffBaseMs: number;
}

/** How long a delivery may be pending before it is given up, in ms. */
const pendingLifetimeMs = 7 * 24 * 60 * 60 * 1000;
/** How many attempts that were lost with a dying process do not count. */
const lostClaimsMax = 3;
const retryAfterMaxMs = 60 * 60 * 1000;
const historyMax = 20;

/** Response codes that no retry would change: the delivery ends at once. */
const permanent = [400, 401, 403, 404, 410, 422];
/** Response codes whose `Retry-After` is honored. */
const throttling = [429, 503];

/** Whether no retry would change this response. */
export function isPermanent(responseCode: number | null): boolean {
  return permanent.includes(responseCode ?? 0);
}

/** Creates a delivery that is due at once. */
export function newDelivery(
  named: Pick<
    Delivery,
    "id" | "projectId" | "subscriptionId" | "eventId" | "eventType" | "eventVersion"
  >,
  now: number,
): Delivery {
  return {
    ...named,
    status: "pending",
    attempts: 0,
    claims: 0,
    attemptsBefore: 0,
    pendingSince: now,
    createdAt: now,
    updatedAt: now,
    dueAt: now,
    lease: null,
    nextRetryAt: now,
    lastAttempt: null,
    responseHead: null,
    history: [],
    error: null,
  };
}

/**
 * Returns the delivery while an attempt runs. Where the attempt is lost, the delivery becomes due
 * again by itself.
 */
export function leasedDelivery(delivery: Delivery, lease: string, until: number): Delivery {
  return { ...delivery, lease, dueAt: until, claims: delivery.claims + 1 };
}

/** Returns why a pending delivery is given up; null when it is attempted again. */
export function giveUpReason(
  delivery: Delivery,
  { attemptsMax }: RetryPolicy,
  now: number,
): string | null {
  if (now - delivery.pendingSince > pendingLifetimeMs) {
    return `gave up: not delivered within ${pendingLifetimeMs / 86_400_000} days`;
  }
  if (delivery.claims < attemptsMax + lostClaimsMax) return null;
  return `gave up: ${delivery.claims} attempts, most of which never completed`;
}

/** Returns the delivery ended without an attempt. */
export function endedAsError(delivery: Delivery, error: string, now: number): Delivery {
  return { ...delivery, status: "error", lease: null, nextRetryAt: null, error, updatedAt: now };
}

/** Returns the delivery after an attempt: delivered, to be retried, or failed. */
export function afterAttempt(
  delivery: Delivery,
  result: Omit<SendResult, "result">,
  { policy, random }: { policy: RetryPolicy; random: number },
): Delivery {
  const { at, latencyMs, responseCode, error } = result;
  const lastAttempt = { at, latencyMs, responseCode, error };
  const tried: Delivery = {
    ...delivery,
    lease: null,
    attempts: delivery.attempts + 1,
    lastAttempt,
    responseHead: result.bodyHead,
    history: [...delivery.history, lastAttempt].slice(-historyMax),
    updatedAt: at + latencyMs,
    error,
  };
  if (error === null) return { ...tried, status: "success", nextRetryAt: null };
  const used = tried.attempts - tried.attemptsBefore;
  const final = isPermanent(responseCode) || used >= policy.attemptsMax;
  if (final) return { ...tried, status: "error", nextRetryAt: null };
  const dueAt = at + latencyMs + retryDelayMs(result, { used, policy, random });
  return { ...tried, dueAt, nextRetryAt: dueAt };
}

/** Returns the longest delay before another attempt, in ms. */
export function longestWaitMs({ attemptsMax, backoffBaseMs }: RetryPolicy): number {
  return Math.max(retryAfterMaxMs, 1.5 * backoffBaseMs * 2 ** (attemptsMax - 1));
}

/**
 * Returns the delay before the next attempt: the base doubled with each attempt used up, multiplied
 * by 0.5 to 1.5 according to `random` in [0, 1); or the receiver's `Retry-After`, where that is
 * longer.
 */
function retryDelayMs(
  { responseCode, retryAfterMs }: Pick<SendResult, "responseCode" | "retryAfterMs">,
  { used, policy, random }: { used: number; policy: RetryPolicy; random: number },
): number {
  const backoff = Math.round(policy.backoffBaseMs * 2 ** (used - 1) * (0.5 + random));
  const retryAfter = throttling.includes(responseCode ?? 0) ? retryAfterMs ?? 0 : 0;
  return Math.max(backoff, Math.min(retryAfter, retryAfterMaxMs));
}

/** Returns the delivery as pending again, with as many attempts as a new one. */
export function redelivered(delivery: Delivery, now: number): Delivery {
  return {
    ...delivery,
    status: "pending",
    claims: 0,
    attemptsBefore: delivery.attempts,
    pendingSince: now,
    updatedAt: now,
    dueAt: now,
    nextRetryAt: now,
    lease: null,
    error: null,
  };
}
