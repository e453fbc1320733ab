import { formatNames } from "../base/endpoints.ts";
import { keptKinds } from "../base/kept_kinds.ts";
import { mapRefusalCodes } from "../base/refusal_reasons.ts";
import { unbookedReasonNames } from "../base/unbooked_reasons.ts";
import { unverifiedReasonNames } from "../base/unverified_reasons.ts";
import { batchBuckets, latencyBuckets } from "./buckets.ts";
import { createEntryMetrics } from "./entry_metrics.ts";
import { MetricsRegistry } from "./registry.ts";
import { createRequestMetrics } from "./request_metrics.ts";
import { createTargetMetrics, upstreamErrorKinds } from "./target_metrics.ts";

/**
 * All metrics that are counted, by name; values read at request time are in gauges.ts. Every
 * label's values come from a list known beforehand, or are a bounded number of names that owners
 * give their upstreams: nothing that a caller chooses (a user, project, model or path) becomes one.
 */
export function createMetrics() {
  const page = new MetricsRegistry();
  const trouble = troubleMeters(page);
  return {
    page,
    requests: createRequestMetrics(page),
    target: createTargetMetrics(page),
    entry: createEntryMetrics(page, trouble.repairs.hold_expired),
    ...chatMeters(page),
    ...commitMeters(page),
    ...deliveryMeters(page),
    ...trouble,
  };
}

/** The metrics that modules update; each call costs some nanoseconds. */
export type Metrics = ReturnType<typeof createMetrics>;

function chatMeters(page: MetricsRegistry) {
  const upstreamSeconds = page.histograms({
    name: "farebox_upstream_seconds",
    help: "The wait for an upstream: to the end of a complete response, to the head of a stream",
    labels: ["answer"],
    bounds: latencyBuckets,
  });
  return {
    chats: page.countersByTwo({
      name: "farebox_chats_total",
      help:
        "Requests by endpoint and how they ended; completed, canceled and failed were sent upstream",
      labels: ["endpoint", "outcome"],
      values: formatNames,
      innerValues: ["completed", "canceled", "failed", "hit", "paywalled", "replayed", "refused"],
    }),
    cacheLookups: page.countersBy({
      name: "farebox_cache_lookups_total",
      help: "Requests looked up in the response cache of their project",
      label: "outcome",
      values: ["hit", "miss"],
    }),
    /**
     * What a call takes besides the wait for its upstream: in this code, and for its caller's body.
     */
    addedTime: page.histograms({
      name: "farebox_chat_added_seconds",
      help: "What this service adds to a charged call: everything but the wait for the upstream",
      bounds: latencyBuckets,
    })({}),
    upstreamTime: {
      whole: upstreamSeconds({ answer: "whole" }),
      streamed: upstreamSeconds({ answer: "streamed" }),
    },
    upstreamErrors: page.countersBy({
      name: "farebox_upstream_faults_total",
      help: "Upstream calls without a complete response ('ended': ended by this service)",
      label: "kind",
      values: [
        ...upstreamErrorKinds,
        "ended",
      ],
    }),
  };
}

function commitMeters(page: MetricsRegistry) {
  return {
    commits: page.countersBy({
      name: "farebox_commits_total",
      help: "Atomic writes by outcome ('refused': a check failed, which is normal now and then)",
      label: "outcome",
      values: ["landed", "refused", "failed"],
    }),
    commitTime: page.histograms({
      name: "farebox_commit_seconds",
      help: "From an atomic write's start to its known outcome",
      bounds: latencyBuckets,
    })({}),
    commitWrites: page.histograms({
      name: "farebox_commit_writes",
      help: "Writes combined into one atomic write",
      bounds: batchBuckets,
    })({}),
    retried: page.counters({
      name: "farebox_commit_retries_total",
      help: "Writes that were sent again, because others of their batch were refused or it failed",
    })({}),
    markers: page.countersBy({
      name: "farebox_commit_markers_total",
      help: "Outcomes that the store did not report, resolved by the write's marker",
      label: "outcome",
      values: ["landed", "not_landed", "unknown"],
    }),
  };
}

function deliveryMeters(page: MetricsRegistry) {
  return {
    deliveries: page.countersBy({
      name: "farebox_deliveries_total",
      help:
        "Webhooks by the result of an attempt ('errored': given up; 'dropped': ended without an attempt)",
      label: "outcome",
      values: ["delivered", "retried", "errored", "dropped"],
    }),
    attempts: page.countersBy({
      name: "farebox_delivery_attempts_total",
      help: "Webhook attempts by status class of the response, or by error",
      label: "result",
      values: [
        ...["2xx", "3xx", "4xx", "5xx", "other_status"] as const,
        ...["timeout", "dns_error", "blocked_address", "connection_refused"] as const,
        ...["tls_error", "connection_error", "invalid_response"] as const,
      ],
    }),
    attemptTime: page.histograms({
      name: "farebox_delivery_attempt_seconds",
      help: "One webhook attempt, from the DNS lookup to the end of the response",
      bounds: latencyBuckets,
    })({}),
  };
}

function troubleMeters(page: MetricsRegistry) {
  const refusedMoney = page.counters({
    name: "farebox_money_refusals_total",
    help: "Calls and charges that were not paid for, by reason",
    labels: ["of", "reason"],
  });
  const reasonsOf = (of: "chat" | "charge") =>
    mapRefusalCodes((reason) => refusedMoney({ of, reason }));
  return {
    refusals: page.countersBy({
      name: "farebox_refusals_total",
      help: "Requests refused for load: too many at once, or more a minute than a limit allows",
      label: "reason",
      values: ["overloaded", "requests", "tokens", "concurrency"],
    }),
    unpricedCalls: page.counters({
      name: "farebox_unpriced_calls_total",
      help: "Calls of models that have no price in their project, which got 404",
    })({}),
    unbookedPayments: page.countersBy({
      name: "farebox_payments_not_booked_total",
      help: "Stripe payments and refunds that Stripe has signed and that could not be booked",
      label: "reason",
      values: unbookedReasonNames,
    }),
    unverifiedEvents: page.countersBy({
      name: "farebox_stripe_events_unverified_total",
      help: "Posts to the webhooks for Stripe that nobody could verify; anyone can send these",
      label: "reason",
      values: unverifiedReasonNames,
    }),
    refusedMoney: { chat: reasonsOf("chat"), charge: reasonsOf("charge") },
    removedRows: page.countersBy({
      name: "farebox_rows_removed_total",
      help: "Rows whose time was over, removed by this process; the guide to operation lists them",
      label: "kind",
      values: keptKinds,
    }),
    repairs: page.countersBy({
      name: "farebox_repairs_total",
      help: "What a dead or slow process left behind, and this one repaired",
      label: "what",
      values: [
        ...["hold_expired", "outbox_row", "lease", "redelivery"] as const,
        ...["stray_row", "commit_marker"] as const,
      ],
    }),
  };
}
