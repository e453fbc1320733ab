import { z } from "zod";
import { idOf, pageQuery } from "../base/fields.ts";
import { answers, type Operation, type Operations } from "../base/operation.ts";
import { idErrors } from "../projects/operations.ts";
import { exampleLogEntry, exampleSubscription } from "./examples.ts";
import { operatorOperations } from "./operator_operations.ts";
import { createSubscriptionSchema } from "./schema.ts";
import {
  deactivatedSchema,
  logsSchema,
  madeSubscriptionSchema,
  oneSubscriptionSchema,
  subscriptionsSchema,
} from "./view.ts";

const own = { tag: "Webhooks", access: "webhooks" } as const;
const path = z.object({ subscriptionId: idOf("sub", "The subscription.") });

const createSubscription: Operation = {
  ...own,
  operationId: "createSubscription",
  summary: "Subscribe an endpoint to events",
  body: {
    schema: createSubscriptionSchema,
    examples: { balances: { url: exampleSubscription.url, events: ["balance.*"] } },
  },
  answers: {
    201: answers("The subscription, with its secret this once.", madeSubscriptionSchema, {
      made: {
        subscription: { ...exampleSubscription, secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIk3Y0PQ" },
      },
    }),
  },
  errors: [
    {
      status: 400,
      code: "invalid_value",
      when: "The `url` could not be delivered to, or the project has 100 active subscriptions.",
    },
    {
      status: 400,
      code: "secrets_key_missing",
      when: "The server has no `SECRETS_KEY`, so it stores no secrets.",
    },
  ],
};

const listSubscriptions: Operation = {
  ...own,
  operationId: "listSubscriptions",
  summary: "List the project's subscriptions",
  query: z.object({
    status: z.enum(["active", "inactive"]).optional().meta({ description: "Left out: all." }),
  }),
  answers: {
    200: answers(
      "All active ones; of the others, those among the newest 500.",
      subscriptionsSchema,
      {
        one: { subscriptions: [exampleSubscription] },
      },
    ),
  },
  errors: [{ status: 400, code: "invalid_value", when: "`status` is none of these." }],
};

const getSubscription: Operation = {
  ...own,
  operationId: "getSubscription",
  summary: "Read a subscription",
  path,
  answers: {
    200: answers("The subscription, without its secret.", oneSubscriptionSchema, {
      one: { subscription: exampleSubscription },
    }),
  },
  errors: idErrors("subscription"),
};

const deactivateSubscription: Operation = {
  ...own,
  operationId: "deactivateSubscription",
  summary: "Deactivate a subscription",
  description: "The record stays, and an operator can enable it again. A second time is no error.",
  path,
  answers: {
    200: answers("Nothing is delivered to it any more.", deactivatedSchema, {
      ended: { deactivated: true, subscription: { ...exampleSubscription, isActive: false } },
    }),
  },
  errors: idErrors("subscription"),
};

const listLogs: Operation = {
  ...own,
  operationId: "listDeliveries",
  summary: "List what was delivered, and what was not",
  description: "Newest first.",
  query: z.object({
    subscriptionId: z.string().optional().meta({ description: "Of one subscription." }),
    status: z.enum(["pending", "success", "error"]).optional(),
    eventType: z.string().optional().meta({
      description: "Of one event's name.",
      example: "balance.depleted",
    }),
    ...pageQuery.shape,
  }),
  answers: {
    200: answers("One page.", logsSchema, { page: { logs: [exampleLogEntry], nextCursor: null } }),
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

/** The operations about webhooks: of projects, and of the operator on them. */
export const webhookOperations: Operations = {
  "/v1/webhooks/subscriptions": { GET: listSubscriptions, POST: createSubscription },
  "/v1/webhooks/subscriptions/:subscriptionId": {
    GET: getSubscription,
    DELETE: deactivateSubscription,
  },
  "/v1/webhooks/logs": { GET: listLogs },
  ...operatorOperations,
};
