import { z } from "zod";
import { idOf, pageQuery } from "../base/fields.ts";
import { type EndpointDoc, type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { idErrors, projectPath } from "../projects/api_doc.ts";
import { exampleLogEntry, exampleSubscription } from "./examples.ts";
import { webhookOperatorApiDoc } from "./operator_api_doc.ts";
import { createSubscriptionSchema, testSubscriptionSchema } from "./schema.ts";
import {
  deactivatedSchema,
  logsSchema,
  madeSubscriptionSchema,
  oneSubscriptionSchema,
  subscriptionsSchema,
  testedSchema,
} from "./view.ts";

const own = { tag: "Webhooks", access: "webhooks" } as const;
const byOperator = { tag: "Operations", access: "operator" } as const;
const exampleTested = {
  delivery: { id: "dly_01K9Z0C8Q4R7T2V5X8Z1B3D5F7" },
  event: { id: "evt_01K9Z0C8Q4R7T2V5X8Z1B3D5F7", type: "balance.depleted" },
};
const path = z.object({ subscriptionId: idOf("sub", "The subscription.") });

const createSubscription: EndpointDoc = {
  ...own,
  operationId: "createSubscription",
  summary: "Create a subscription",
  body: {
    schema: createSubscriptionSchema,
    examples: { balances: { url: exampleSubscription.url, events: ["balance.*"] } },
  },
  answers: {
    201: responseDocs(
      "The subscription, with its secret. The secret is shown only once.",
      madeSubscriptionSchema,
      {
        made: {
          subscription: { ...exampleSubscription, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIk3Y0PQ" },
        },
      },
    ),
  },
  errors: [
    {
      status: 400,
      code: "invalid_value",
      when:
        "The `url` cannot be delivered to, or the project already has 100 active subscriptions.",
    },
    {
      status: 400,
      code: "secrets_key_missing",
      when: "The server has no `SECRETS_KEY`, so it cannot store secrets.",
    },
  ],
};

const listSubscriptions: EndpointDoc = {
  ...own,
  operationId: "listSubscriptions",
  summary: "List subscriptions",
  query: z.object({
    status: z.enum(["active", "inactive"]).optional().meta({ description: "Omitted: all." }),
  }),
  answers: {
    200: responseDocs(
      "All active subscriptions, and those of the newest 500 others.",
      subscriptionsSchema,
      {
        one: { subscriptions: [exampleSubscription] },
      },
    ),
  },
  errors: [{ status: 400, code: "invalid_value", when: "`status` is not a known status." }],
};

const getSubscription: EndpointDoc = {
  ...own,
  operationId: "getSubscription",
  summary: "Retrieve a subscription",
  path,
  answers: {
    200: responseDocs("The subscription, without its secret.", oneSubscriptionSchema, {
      one: { subscription: exampleSubscription },
    }),
  },
  errors: idErrors("subscription"),
};

const deactivateSubscription: EndpointDoc = {
  ...own,
  operationId: "deactivateSubscription",
  summary: "Deactivate a subscription",
  description:
    "The record stays, and an operator can enable it again. Repeating the call is not an error.",
  path,
  answers: {
    200: responseDocs("Nothing is delivered to the subscription any more.", deactivatedSchema, {
      ended: { deactivated: true, subscription: { ...exampleSubscription, isActive: false } },
    }),
  },
  errors: idErrors("subscription"),
};

const testSubscription: EndpointDoc = {
  ...own,
  operationId: "testSubscription",
  summary: "Send a test event",
  description: "Sends an example of an event to this subscription alone, through the usual " +
    'deliveries, with `{"test": true}` as its metadata.',
  path,
  body: {
    schema: testSubscriptionSchema,
    examples: { depleted: { type: "balance.depleted" } },
  },
  answers: { 202: responseDocs("The event is on its way.", testedSchema, { sent: exampleTested }) },
  errors: [
    {
      status: 400,
      code: "invalid_value",
      when: "`type` is not the name of an event, or the subscription is inactive.",
    },
    ...idErrors("subscription"),
  ],
};

const listLogs: EndpointDoc = {
  ...own,
  operationId: "listDeliveries",
  summary: "List deliveries",
  description: "Newest first.",
  query: z.object({
    subscriptionId: z.string().optional().meta({ description: "Only of this subscription." }),
    status: z.enum(["pending", "success", "error"]).optional(),
    eventType: z.string().optional().meta({
      description: "Only of events with this name.",
      example: "balance.depleted",
    }),
    ...pageQuery.shape,
  }),
  answers: {
    200: responseDocs("One page.", logsSchema, {
      page: { logs: [exampleLogEntry], nextCursor: null },
    }),
  },
  errors: [
    ...idErrors("subscription"),
    {
      status: 400,
      code: "invalid_value",
      when: "A filter, `limit` or `cursor` is not valid.",
    },
  ],
};

/**
 * The API documentation of the webhook endpoints: for projects, and for the operator on their
 * behalf.
 */
export const webhookApiDoc: EndpointDocs = {
  "/v1/webhooks/subscriptions": { GET: listSubscriptions, POST: createSubscription },
  "/v1/webhooks/subscriptions/:subscriptionId": {
    GET: getSubscription,
    DELETE: deactivateSubscription,
  },
  "/v1/webhooks/subscriptions/:subscriptionId/test": { POST: testSubscription },
  "/v1/admin/projects/:projectId/subscriptions": {
    GET: {
      ...listSubscriptions,
      ...byOperator,
      operationId: "listProjectsSubscriptions",
      variantOf: "listSubscriptions",
      summary: "List subscriptions, as the operator",
      path: projectPath,
      errors: [...listSubscriptions.errors ?? [], ...idErrors("project")],
    },
  },
  "/v1/admin/projects/:projectId/subscriptions/:subscriptionId/test": {
    POST: {
      ...testSubscription,
      ...byOperator,
      operationId: "testProjectsSubscription",
      variantOf: "testSubscription",
      summary: "Send a test event, as the operator",
      path: z.object({ ...projectPath.shape, ...path.shape }),
      errors: [
        ...(testSubscription.errors ?? []).slice(0, 1),
        ...idErrors("project or subscription"),
      ],
    },
  },
  "/v1/webhooks/logs": { GET: listLogs },
  ...webhookOperatorApiDoc,
};
