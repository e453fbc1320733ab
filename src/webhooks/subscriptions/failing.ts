import { errorFields } from "../../base/errors.ts";
import { fromBytes } from "../../base/json.ts";
import type { Deps } from "../../deps.ts";
import { bySystem, newEvent } from "../../events/event.ts";
import { appendEvents } from "../../events/outbox.ts";
import type { CommitWithEvents } from "../../projects/commit_with_events.ts";
import { subscriptionHealthKey } from "../../store/keys.ts";
import { emptyWrite } from "../../store/kv.ts";
import type { Endpoint } from "../delivery/endpoint.ts";
import type { Delivery, SubscriptionHealth } from "../schema.ts";
import { putHealth, readSubscription } from "../store.ts";

/**
 * How long a subscription must have failed until the project's other subscriptions are notified, in
 * ms.
 */
const failingAfterMs = 24 * 60 * 60 * 1000;

/** Whether all attempts have failed for so long that someone should look at the endpoint. */
export function isFailingLong(
  { failingSince }: Pick<SubscriptionHealth, "failingSince">,
  now: number,
): boolean {
  return failingSince !== undefined && now - Date.parse(failingSince) >= failingAfterMs;
}

/**
 * Notifies the project's other subscriptions of one that has failed for long, once until it works
 * again. Never throws: the next failure tries again.
 */
export type ReportFailing = (
  endpoint: Pick<Endpoint, "projectId" | "id">,
  failed: Delivery,
) => Promise<void>;

/** Creates the report of failing subscriptions. */
export function createReportFailing(
  deps: Pick<Deps, "kv" | "clock" | "id" | "log">,
  commit: CommitWithEvents,
): ReportFailing {
  const { kv, clock, id: makeId, log } = deps;

  async function report(
    { projectId, id }: Pick<Endpoint, "projectId" | "id">,
    { responseCode, error }: { responseCode: number | null; error: string | null },
  ): Promise<void> {
    await commit(projectId, async (project) => {
      const key = subscriptionHealthKey(projectId, id);
      const { value, version } = await kv.get(key);
      const found = await readSubscription(kv, projectId, id);
      const health = value && fromBytes<SubscriptionHealth>(value);
      // It works again, or another process has reported it.
      if (!health?.failingSince || health.failingReportedAt || !found?.value.isActive) return null;
      const now = clock.now();
      const event = newEvent("webhook.failing", {
        trigger: bySystem,
        subject: { type: "integration", id, externalId: id },
      }, {
        subscriptionId: id,
        host: new URL(found.value.url).host,
        failingSince: health.failingSince,
        lastDeliveredAt: health.lastDeliveredAt,
        consecutiveFailures: health.consecutiveFailures,
        responseCode,
        error: error ?? "",
      });
      const write = emptyWrite();
      write.checks.push({ key, version });
      const reported = { ...health, failingReportedAt: new Date(now).toISOString() };
      putHealth(write, { projectId, id }, reported);
      const others = project.listeners.filter(({ subscriptionId }) => subscriptionId !== id);
      appendEvents(write, { ...project, listeners: others }, { events: [event], now, id: makeId });
      return { write, events: [] };
    });
    log("warn", "webhook_failing", { projectId, subscription: id, error });
  }

  return async (endpoint, { lastAttempt }) => {
    try {
      await report(endpoint, lastAttempt ?? { responseCode: null, error: null });
    } catch (error) {
      log("warn", "webhook_failing_not_reported", {
        subscription: endpoint.id,
        ...errorFields(error),
      });
    }
  };
}
