import { isObject, parseJson } from "../../base/json.ts";
import { settingsStaleMs } from "../../base/limits.ts";
import type { Deps } from "../../deps.ts";
import type { ProjectCache } from "../../projects/project_cache.ts";
import { afterAttempt, endedAsError, isPermanent } from "./delivery.ts";
import type { DeliverySlots, Endpoint, LeasedDelivery } from "./endpoint.ts";
import type { Guard } from "./guard.ts";
import type { ResultRecorder } from "./record.ts";
import type { Delivery } from "../schema.ts";
import { type OutgoingWebhook, send, type SendResult } from "./send.ts";
import type { OpenSubscription, Subscriptions } from "../subscriptions/subscriptions.ts";

/** The services that attempts depend on. */
export interface AttemptDeps {
  deps: Deps;
  projectCache: ProjectCache;
  guard: Guard;
  subscriptions: Pick<Subscriptions, "open">;
}

/** Runs attempts of leased deliveries. */
interface AttemptRunner {
  /** Opens the subscription, sends the event, and records the result. */
  run(leased: LeasedDelivery): Promise<void>;
}

interface AttemptRunnerDeps {
  slots: DeliverySlots;
  results: ResultRecorder;
  /** Called when a slot becomes free. */
  onFree(): void;
}

type Tracing = NonNullable<Deps["tracing"]>;
type Span = ReturnType<Tracing["apart"]>;

/** How much of a lease is left for the result to be written, in ms. */
const recordMs = 5_000;
/**
 * How long an opened subscription is used before its old secrets are checked for expiry again, in
 * ms.
 */
const openedMs = 60 * settingsStaleMs;

/** Creates the runner of attempts: open -> send -> record. */
export function createAttemptRunner(
  { deps, projectCache, guard, subscriptions }: AttemptDeps,
  { slots, results, onFree }: AttemptRunnerDeps,
): AttemptRunner {
  const { clock, config, randomBytes, alarm } = deps;
  const { attemptsMax, backoffBaseMs } = config.webhooks;
  const policy = { attemptsMax, backoffBaseMs };

  /**
   * Returns the subscription with its secrets. Opens it again when its project has changed, which
   * every change of a subscription causes.
   */
  async function open(endpoint: Endpoint): Promise<OpenSubscription | null> {
    const { version } = await projectCache.current(endpoint.projectId);
    const { opened } = endpoint;
    const now = clock.elapsed();
    if (opened?.version === version && now - opened.at < openedMs) return await opened.subscription;
    const subscription = subscriptions.open(endpoint.projectId, endpoint.id);
    endpoint.opened = { version, at: now, subscription };
    subscription.catch(() => (endpoint.opened = null));
    return await subscription;
  }

  function random(): number {
    const [high = 0, low = 0] = randomBytes(2);
    return (high * 256 + low) / 65_536;
  }

  /**
   * Sends the delivery. When a kept connection turns out to be closed, that attempt counts, and
   * another follows at once on a new connection, within the same lease. Returns the last result,
   * and the delivery before it.
   */
  async function sendOnLiveConnection(
    outgoing: OutgoingWebhook,
  ): Promise<{ result: SendResult; before: Delivery }> {
    const { delivery } = outgoing;
    const result = await send(deps, guard, outgoing);
    if (!result.isStale) return { result, before: delivery };
    const timeoutMs = Math.min(
      config.webhooks.timeoutMs,
      delivery.dueAt - clock.now() - recordMs,
    );
    const before = afterAttempt(delivery, result, { policy, random: random() });
    if (before.status !== "pending" || timeoutMs <= 0) return { result, before: delivery };
    const again = { ...outgoing, delivery: before, newConnection: true, timeoutMs };
    return { result: await send(deps, guard, again), before };
  }

  async function record(
    leased: LeasedDelivery,
    result: { after: Delivery; tried: boolean },
  ): Promise<void> {
    await leased.settled();
    const before = leased.isWritten ? leased.delivery : null;
    await results.record(leased.endpoint, { ...result, before, row: leased.row });
  }

  function startTrace({ delivery, eventText, endpoint }: LeasedDelivery, tracing: Tracing) {
    const span = tracing.apart("delivery", causeOf(eventText));
    span.set({
      "farebox.delivery": delivery.id,
      "farebox.event": delivery.eventId,
      "farebox.event_type": delivery.eventType,
      "farebox.subscription": endpoint.id,
      "farebox.attempt": delivery.attempts + 1,
    });
    return span;
  }

  async function attempt(
    leased: LeasedDelivery,
    sent: () => void,
    span: Span | null,
  ): Promise<void> {
    const { endpoint, delivery, eventText } = leased;
    span?.step("prepare");
    const subscription = await open(endpoint);
    // Opening took long, or the slot came late: another process holds the lease, or will take it.
    if (!(await leased.mayBegin())) return;
    if (!subscription?.isActive) {
      const after = endedAsError(delivery, "subscription inactive", clock.now());
      span?.step("record");
      return await record(leased, { after, tried: false });
    }
    span?.step("send");
    const outgoing = { delivery, eventText, subscription };
    const { result, before } =
      await (span
        ? span.run(() => sendOnLiveConnection(outgoing))
        : sendOnLiveConnection(outgoing));
    span?.set({ "farebox.result": result.result });
    span?.step("record");
    const after = afterAttempt(before, result, { policy, random: random() });
    // An endpoint that refuses a delivery permanently works, as far as the breaker is concerned.
    const works = result.error === null || isPermanent(result.responseCode);
    endpoint.breaker.record(works, clock.now());
    // The endpoint has responded: the next delivery may go out while this result is written.
    if (!results.isBehind(endpoint)) sent();
    await record(leased, { after, tried: true });
    if (after.status === "pending") alarm.schedule(after.dueAt);
  }

  return {
    async run(leased) {
      let held = true;
      const free = () => {
        if (!held) return;
        held = false;
        slots.release(leased.endpoint);
        onFree();
      };
      const span = deps.tracing && startTrace(leased, deps.tracing);
      try {
        await attempt(leased, free, span);
      } finally {
        free();
        span?.end();
      }
    },
  };
}

/** Returns the id of the request that caused an event; the activity of a chat contains it. */
function causeOf(eventText: string): string | null {
  const event = parseJson(eventText);
  const subject = isObject(event) && isObject(event.subject) ? event.subject : {};
  return typeof subject.id === "string" ? subject.id.replace(/^act_/, "req_") : null;
}
