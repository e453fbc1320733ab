import { readRetryAfter } from "../../base/retry_after.ts";
import { DeliveryError } from "../../base/delivery_error.ts";
import type { Deps, WebhookHttpResponse, WebhookProgress } from "../../deps.ts";
import type { Guard } from "./guard.ts";
import type { Delivery } from "../schema.ts";
import { serviceSignature, standardSignatures } from "./signature.ts";
import type { OpenSubscription } from "../subscriptions/subscriptions.ts";

/** The result of one attempt. Times in ms. */
export interface SendResult {
  result: AttemptResult;
  at: number;
  latencyMs: number;
  responseCode: number | null;
  /** Why the attempt failed, for people; null for a success. */
  error: string | null;
  /** The receiver's `Retry-After`, on 429 and 503. */
  retryAfterMs: number | null;
  bodyHead: string | null;
  /** Whether a kept connection turned out to be closed: the next attempt may follow at once. */
  isStale?: boolean;
}

/** The result of an attempt, as metrics count it. */
type AttemptResult = keyof Deps["metrics"]["attempts"];

/** A delivery to send. */
export interface OutgoingWebhook {
  delivery: Delivery;
  /** The event as it was stored: JSON. */
  eventText: string;
  subscription: OpenSubscription;
  /** Whether no kept connection may be used. */
  newConnection?: boolean;
  /** The deadline of the attempt, in ms; by default the one of the settings. */
  timeoutMs?: number;
}

/** Makes one attempt: check the addresses, sign, post, all within one deadline. Never throws. */
export async function send(
  deps: Pick<Deps, "sendWebhook" | "clock" | "config" | "metrics">,
  guard: Guard,
  outgoing: OutgoingWebhook,
): Promise<SendResult> {
  const { clock, config, metrics } = deps;
  const at = clock.now();
  const startedAt = clock.elapsed();
  const end = (came: Came): SendResult => {
    metrics.attempts[came.result].add();
    metrics.attemptTime.observeMs(clock.elapsed() - startedAt);
    return {
      at,
      latencyMs: Math.round(clock.elapsed() - startedAt),
      responseCode: null,
      error: null,
      retryAfterMs: null,
      bodyHead: null,
      ...came,
    };
  };
  const deadline = new AbortController();
  const timeoutMs = outgoing.timeoutMs ?? config.webhooks.timeoutMs;
  const progress: Progress = { sent: false, head: null };
  const cancel = clock.after(timeoutMs, () => deadline.abort());
  try {
    const url = new URL(outgoing.subscription.url);
    const vetted = await orAborted(
      guard.vet(url, outgoing.delivery.projectId),
      deadline.signal,
    );
    if ("refused" in vetted) return end(refused(vetted.refused));
    const answer = deps.sendWebhook({
      url,
      addresses: vetted.addresses,
      ...requestOfAttempt(outgoing, at),
      signal: deadline.signal,
      newConnection: outgoing.newConnection,
      onProgress: (step) => Object.assign(progress, step),
    });
    // Whatever happens to the call, its slot is free after the deadline.
    const response = await orAborted(answer, deadline.signal);
    return end(judge(response, clock.now()));
  } catch (error) {
    const came = deadline.signal.aborted
      ? { result: "timeout" as const, error: timedOut(progress, timeoutMs) }
      : faultOf(error);
    return end({ ...receivedOf(progress, clock.now()), ...came });
  } finally {
    cancel();
  }
}

// Errors contain no IP address and no detail: they must not map the network behind the service.
const refusals = {
  dns_error: "dns_error: the host name could not be resolved",
  blocked_address: "blocked_address: the host name resolves to an address that is not public",
};

function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  return Promise.race([work, aborted]);
}

/**
 * Returns a request as an attempt at a given time sends it, signed with the subscription's current
 * secrets. `delivery.attempts` counts the attempts before this one.
 */
export function requestOfAttempt(
  outgoing: OutgoingWebhook,
  at: number,
): { headers: Record<string, string>; body: string } {
  const body = bodyOf(outgoing, at);
  return { headers: headersOf(outgoing, body, at), body };
}

/** Returns the body: this attempt, and the event as it was stored. */
function bodyOf({ delivery, eventText }: OutgoingWebhook, at: number): string {
  const about = {
    id: delivery.id,
    subscriptionId: delivery.subscriptionId,
    attempts: delivery.attempts + 1,
    createdAt: new Date(delivery.createdAt).toISOString(),
    updatedAt: new Date(at).toISOString(),
  };
  return `{"delivery":${JSON.stringify(about)},"event":${eventText}}`;
}

/**
 * Returns the headers of a request. The subscriber's own come first, so that none of ours can be
 * replaced.
 */
function headersOf(
  { delivery, subscription }: OutgoingWebhook,
  body: string,
  at: number,
): Record<string, string> {
  const timestamp = Math.floor(at / 1000);
  const { id } = delivery;
  const { secrets } = subscription;
  // `X-Service-Signature` holds one signature, so the oldest secret signs it: the receiver may not
  // have changed its own yet.
  const oldest = secrets[secrets.length - 1] ?? "";
  return {
    ...subscription.customHeaders,
    "content-type": "application/json",
    "user-agent": "Farebox-Webhooks/1",
    "accept-encoding": "identity",
    "x-service-event": `${delivery.eventType}@${delivery.eventVersion}`,
    "x-service-signature": serviceSignature(oldest, body),
    "x-service-timestamp": new Date(at).toISOString(),
    "webhook-id": id,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": standardSignatures(secrets, { id, timestamp, body }),
  };
}

type Came = Pick<SendResult, "result"> & Partial<SendResult>;

function judge({ status, retryAfter, bodyHead }: WebhookHttpResponse, now: number): Came {
  const answered = { result: classOf(status), responseCode: status, bodyHead };
  if (status >= 200 && status < 300) return answered;
  const error = status >= 300 && status < 400
    ? `redirect: status ${status}; redirects are not followed`
    : `status ${status}`;
  return { ...answered, error, retryAfterMs: readRetryAfter(retryAfter ?? "", now) };
}

function classOf(status: number): AttemptResult {
  const classes = ["2xx", "3xx", "4xx", "5xx"] as const;
  return classes[Math.floor(status / 100) - 2] ?? "other_status";
}

function refused(result: keyof typeof refusals): Came {
  return { result, error: refusals[result] };
}

/** The progress of an attempt, for its record where it breaks off. */
interface Progress {
  sent: boolean;
  head: Extract<WebhookProgress, { head: unknown }>["head"] | null;
}

/** The record of a response that broke off. */
function receivedOf(
  { head }: Progress,
  now: number,
): Pick<SendResult, "responseCode" | "retryAfterMs"> {
  return {
    responseCode: head?.status ?? null,
    retryAfterMs: readRetryAfter(head?.retryAfter ?? "", now),
  };
}

function timedOut({ sent, head }: Progress, timeoutMs: number): string {
  if (head) return `timeout: status ${head.status}, but no complete body within ${timeoutMs} ms`;
  if (sent) return `timeout: no complete response within ${timeoutMs} ms`;
  return `timeout: no connection within ${timeoutMs} ms`;
}

function faultOf(error: unknown): Came {
  if (error instanceof DeliveryError) {
    const { fault, message, bodyHead, isStale } = error;
    return { result: fault, error: `${fault}: ${message}`, bodyHead, isStale };
  }
  if (error instanceof Error && /ECONNREFUSED/.test(error.message)) {
    return {
      result: "connection_refused",
      error: "connection_refused: nothing is listening there",
    };
  }
  return { result: "connection_error", error: "connection_error: the connection was closed early" };
}
