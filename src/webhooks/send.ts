import type { Deps, WebhookHttpResponse } from "../deps.ts";
import type { Guard } from "./guard.ts";
import type { Delivery } from "./schema.ts";
import { serviceSignature, standardSignatures } from "./signature.ts";
import type { OpenSubscription } from "./subscriptions.ts";

/** The result of one attempt. Times in ms. */
export interface SendResult {
  result: AttemptResult;
  at: number;
  latencyMs: number;
  responseCode: number | null;
  /** Null for a success. */
  error: string | null;
  /** The receiver's `Retry-After`, on 429 and 503. */
  retryAfterMs: number | null;
  bodyHead: string | null;
}

/** The result of an attempt, as metrics count it. */
export type AttemptResult = keyof Deps["metrics"]["attempts"];

/** A delivery to send. */
export interface OutgoingWebhook {
  delivery: Delivery;
  /** The event as it was stored: JSON. */
  eventText: string;
  subscription: OpenSubscription;
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
  const timeout = `timeout: no complete response within ${config.webhooks.timeoutMs} ms`;
  const cancel = clock.after(config.webhooks.timeoutMs, () => deadline.abort());
  try {
    const url = new URL(outgoing.subscription.url);
    const vetted = await orAborted(guard.vet(url), deadline.signal);
    if ("refused" in vetted) return end(refused(vetted.refused));
    const body = bodyOf(outgoing, at);
    const answer = deps.sendWebhook({
      url,
      addresses: vetted.addresses,
      headers: headersOf(outgoing, body, at),
      body,
      signal: deadline.signal,
    });
    // Whatever happens to the call, its slot is free after the deadline.
    const response = await orAborted(answer, deadline.signal);
    return end(judge(response, clock.now()));
  } catch (error) {
    if (deadline.signal.aborted) return end({ result: "timeout", error: timeout });
    return end(faultOf(error));
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

/** Puts the subscriber's own headers first, so that none of ours can be replaced. */
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

// RFC 9110, 5.6.7: the current format, and two obsolete ones that must be read. All are GMT.
const httpDate = new RegExp(
  "^([A-Z][a-z]{2}, \\d\\d [A-Z][a-z]{2} \\d{4} [\\d:]{8} GMT|" +
    "[A-Z][a-z]{5,8}, \\d\\d-[A-Z][a-z]{2}-\\d\\d [\\d:]{8} GMT|" +
    "[A-Z][a-z]{2} [A-Z][a-z]{2} [ \\d]\\d [\\d:]{8} \\d{4})$",
);

/**
 * Parses `Retry-After`: seconds or a date (RFC 9110, 10.2.3). Returns ms from now; null for
 * neither.
 */
export function readRetryAfter(text: string, now: number): number | null {
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1000;
  // Date.parse alone accepts nearly anything, such as "wait 99999".
  if (!httpDate.test(text)) return null;
  const date = Date.parse(text.endsWith(" GMT") ? text : `${text} GMT`);
  return Number.isNaN(date) ? null : Math.max(0, date - now);
}

function classOf(status: number): AttemptResult {
  const classes = ["2xx", "3xx", "4xx", "5xx"] as const;
  return classes[Math.floor(status / 100) - 2] ?? "other_status";
}

function refused(result: keyof typeof refusals): Came {
  return { result, error: refusals[result] };
}

function faultOf(error: unknown): Came {
  const result = kindOf(error);
  return { result, error: `${result}: ${faults[result]}` };
}

const faults = {
  connection_refused: "nothing is listening there",
  tls_error: "no secure connection to that host could be established",
  connection_error: "the connection was closed early",
};

function kindOf(error: unknown): keyof typeof faults {
  const text = error instanceof Error ? `${Reflect.get(error, "code") ?? ""} ${error.message}` : "";
  if (/ECONNREFUSED/.test(text)) return "connection_refused";
  const secure = /CERT|certificate|TLS|SSL|ALTNAME|handshake|UnknownIssuer/i;
  return secure.test(text) ? "tls_error" : "connection_error";
}
