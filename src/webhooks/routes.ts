import { type ApiError, badCursor, badRequest } from "../base/errors.ts";
import { isId } from "../base/ids.ts";
import type { Handler, Incoming } from "../base/handler.ts";
import { bodyBytesMax } from "../base/limits.ts";
import { parseWith, readJsonBody, readLimit } from "../base/request.ts";
import { jsonResponse } from "../base/response.ts";
import type { Deps } from "../deps.ts";
import { eventTypes } from "../events/catalogue.ts";
import { isEventType } from "../events/example.ts";
import { nearestEvent } from "../events/event_patterns.ts";
import { type AuditActor, byApiKey, byOperator } from "../projects/audit.ts";
import type { Auth, Caller } from "../projects/auth.ts";
import { type AdminGuard, checkId } from "../projects/admin_guard.ts";
import { listLogs, viewDelivery } from "./delivery/logs.ts";
import type { Redelivery } from "./delivery/redelivery.ts";
import type { ResealPage } from "./subscriptions/reseal.ts";
import {
  createSubscriptionSchema,
  type DeliveryStatus,
  operateSubscriptionSchema,
  redeliverAllSchema,
  testSubscriptionSchema,
} from "./schema.ts";
import { sendTestEvent } from "./subscriptions/test_event.ts";
import type { CommitWithEvents } from "../projects/commit_with_events.ts";
import type { ProjectCache } from "../projects/project_cache.ts";
import type { Subscriptions } from "./subscriptions/subscriptions.ts";

interface WebhookDeps {
  deps: Deps;
  auth: Auth;
  adminGuard: AdminGuard;
  subscriptions: Subscriptions;
  redelivery: Redelivery;
  projectCache: ProjectCache;
  commit: CommitWithEvents;
  reseal: (cursor: string | undefined, by: AuditActor) => Promise<ResealPage>;
}

const body = async ({ request, inTime }: Incoming) =>
  (await inTime(readJsonBody(request, bodyBytesMax))).value;
const answer = (status: number, value: unknown, { requestId }: Incoming) =>
  jsonResponse(status, value, requestId, { "cache-control": "no-store" });
const subscriptionOf = ({ param }: Incoming) => checkId(param("subscriptionId"), "subscription");

/** The webhook endpoints: a project's own need the scope `webhooks`. */
export function webhookRoutes(services: WebhookDeps) {
  const { auth, subscriptions } = services;
  const own = (
    handler: (incoming: Incoming, projectId: string, key: Caller["key"]) => Promise<Response>,
  ): Handler =>
  async (incoming) => {
    const { snapshot, key } = await auth.caller(incoming.request, "webhooks");
    return await handler(incoming, snapshot.project.id, key);
  };
  return {
    ...operatorRoutes(services),
    createSubscription: own(async (incoming, projectId, key) => {
      const settings = parseWith(createSubscriptionSchema, await body(incoming));
      const by = byApiKey(key, "api", incoming.address());
      const { view, secret } = await subscriptions.create(projectId, settings, by);
      return answer(201, { subscription: { ...view, secret } }, incoming);
    }),
    listSubscriptions: own(async (incoming, projectId) => {
      const list = await subscriptions.list(projectId, readActivity(incoming.query("status")));
      return answer(200, { subscriptions: list }, incoming);
    }),
    getSubscription: own(async (incoming, projectId) => {
      const subscription = await subscriptions.read(projectId, subscriptionOf(incoming));
      return answer(200, { subscription }, incoming);
    }),
    deactivateSubscription: own(async (incoming, projectId, key) => {
      const id = subscriptionOf(incoming);
      const subscription = await subscriptions.deactivate(
        projectId,
        id,
        byApiKey(key, "api", incoming.address()),
      );
      return answer(200, { deactivated: true, subscription }, incoming);
    }),
    testSubscription: own(async (incoming, projectId, key) =>
      await testOf(services, incoming, { projectId, by: byApiKey(key, "api", incoming.address()) })
    ),
    logs: own(async (incoming, projectId) =>
      answer(200, await logsOf(services, incoming, projectId), incoming)
    ),
  };
}

/** The operator's endpoints for a project's webhooks. They need `ADMIN_KEY`. */
function operatorRoutes(services: WebhookDeps) {
  const { adminGuard, projectCache, subscriptions, redelivery, reseal } = services;
  const projectOf = ({ param }: Incoming) => checkId(param("projectId"), "project");
  const by = ({ address }: Incoming) => byOperator("api", address());
  return {
    operateSubscription: adminGuard(async (incoming) => {
      const wish = parseWith(operateSubscriptionSchema, await body(incoming));
      const id = subscriptionOf(incoming);
      const { view, secret } = await subscriptions.operate(
        projectOf(incoming),
        id,
        wish,
        by(incoming),
      );
      const subscription = secret === null ? view : { ...view, secret };
      return answer(200, { subscription }, incoming);
    }),
    listProjectsSubscriptions: adminGuard(async (incoming) => {
      const { project } = await projectCache.refresh(projectOf(incoming));
      const status = readActivity(incoming.query("status"));
      return answer(200, { subscriptions: await subscriptions.list(project.id, status) }, incoming);
    }),
    testProjectsSubscription: adminGuard(async (incoming) =>
      await testOf(services, incoming, { projectId: projectOf(incoming), by: by(incoming) })
    ),
    resealSecrets: adminGuard(async (incoming) => {
      const cursor = incoming.query("cursor");
      if (cursor !== undefined && !isId("pw", cursor)) {
        throw badCursor();
      }
      return answer(200, await reseal(cursor, by(incoming)), incoming);
    }),
    redeliver: adminGuard(async (incoming) => {
      const id = checkId(incoming.param("deliveryId"), "delivery");
      const delivery = await redelivery.one(projectOf(incoming), id, by(incoming));
      return answer(202, { delivery: viewDelivery(delivery, null) }, incoming);
    }),
    redeliverAll: adminGuard(async (incoming) => {
      const { since } = parseWith(redeliverAllSchema, await body(incoming));
      const projectId = projectOf(incoming);
      const { id } = await subscriptions.read(projectId, subscriptionOf(incoming));
      const meant = { subscriptionId: id, since: Date.parse(since) };
      const job = await redelivery.all(projectId, meant, by(incoming));
      return answer(202, { redelivery: job }, incoming);
    }),
    getRedelivery: adminGuard(async (incoming) => {
      const jobId = checkId(incoming.param("jobId"), "redelivery");
      return answer(
        200,
        { redelivery: await redelivery.job(projectOf(incoming), jobId) },
        incoming,
      );
    }),
  };
}

/** Sends an example of an event to a subscription. Throws 400 for an unknown one. */
async function testOf(
  services: WebhookDeps,
  incoming: Incoming,
  { projectId, by }: { projectId: string; by: AuditActor },
): Promise<Response> {
  const { type } = parseWith(testSubscriptionSchema, await body(incoming));
  if (!isEventType(type)) throw unknownEvent("type", type);
  const subscription = await services.subscriptions.read(projectId, subscriptionOf(incoming));
  const { eventId, deliveryId } = await sendTestEvent(services, subscription, { type, by });
  return answer(202, { delivery: { id: deliveryId }, event: { id: eventId, type } }, incoming);
}

function unknownEvent(param: string, type: string): ApiError {
  const nearest = nearestEvent(type.slice(0, 100));
  return badRequest(param, `'${param}' is not the name of an event. The closest is '${nearest}'.`);
}

function logsOf({ deps }: WebhookDeps, { query }: Incoming, projectId: string) {
  const subscriptionId = query("subscriptionId");
  const status = readStatus(query("status"));
  const eventType = query("eventType");
  if (subscriptionId !== undefined) checkId(subscriptionId, "subscription");
  if (eventType !== undefined && !eventTypes.includes(eventType)) {
    throw unknownEvent("eventType", eventType);
  }
  return listLogs(deps, projectId, {
    filter: { subscriptionId, eventType },
    status,
    limit: readLimit(query("limit")),
    cursor: query("cursor"),
  });
}

function readStatus(status: string | undefined): DeliveryStatus | null {
  if (status === undefined) return null;
  if (status === "pending" || status === "success" || status === "error") return status;
  throw badRequest("status", "'status' must be pending, success or error.");
}

function readActivity(status: string | undefined): "active" | "inactive" | null {
  if (status === undefined) return null;
  if (status === "active" || status === "inactive") return status;
  throw badRequest("status", "'status' must be active or inactive.");
}
