import { z } from "zod";
import { cursor, idOf } from "../base/fields.ts";
import { type EndpointDoc, type EndpointDocs, responseDocs } from "../base/endpoint_doc.ts";
import { idErrors, projectPath } from "../projects/api_doc.ts";
import { exampleLogEntry, exampleSubscription } from "./examples.ts";
import { operateSubscriptionSchema, redeliverAllSchema } from "./schema.ts";
import {
  operatedSubscriptionSchema,
  redeliveredSchema,
  redeliverySchema,
  resealSchema,
} from "./view.ts";

const byOperator = { tag: "Operations", access: "operator" } as const;
const subscriptionPath = projectPath.extend({ subscriptionId: idOf("sub", "The subscription.") });

const redelivery = {
  id: "job_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  projectId: "pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  subscriptionId: "sub_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  from: "dly_01K9Z0C8Q40000000000000000",
  until: "dly_01K9Z0C8Q50000000000000000",
  redelivered: 0,
  status: "running",
  createdAt: "2026-01-31T09:30:00.000Z",
  updatedAt: "2026-01-31T09:30:00.000Z",
};

const redeliverAll: EndpointDoc = {
  ...byOperator,
  operationId: "redeliverAll",
  summary: "Redeliver failed events",
  path: subscriptionPath,
  body: { schema: redeliverAllSchema, examples: { day: { since: "2026-01-31T00:00:00Z" } } },
  answers: {
    202: responseDocs("The redelivery has started and continues by itself.", redeliverySchema, {
      begun: { redelivery },
    }),
  },
  errors: idErrors("subscription"),
};

const getRedelivery: EndpointDoc = {
  ...byOperator,
  operationId: "getRedelivery",
  summary: "Retrieve a redelivery",
  path: projectPath.extend({ jobId: idOf("job", "The redelivery.") }),
  answers: {
    200: responseDocs(
      "The current progress. It is kept for a week after the redelivery ends.",
      redeliverySchema,
      {
        done: { redelivery: { ...redelivery, redelivered: 12, status: "done" } },
      },
    ),
  },
  errors: idErrors("redelivery"),
};

const resealSecrets: EndpointDoc = {
  ...byOperator,
  operationId: "resealSecrets",
  summary: "Re-encrypt secrets",
  description: "Call it after a change of `SECRETS_KEY`, until `nextCursor` is null. Only then, " +
    "and with nothing unreadable, the older keys can be removed: `/readyz` warns until then.",
  query: z.object({ cursor }),
  answers: {
    200: responseDocs("How many secrets were encrypted with an older key.", resealSchema, {
      last: { resealed: 3, unreadable: [], nextCursor: null },
    }),
  },
  errors: [
    { status: 400, code: "invalid_value", when: "`cursor` is not valid." },
  ],
};

const operateSubscription: EndpointDoc = {
  ...byOperator,
  operationId: "operateSubscription",
  summary: "Update a subscription",
  path: subscriptionPath,
  body: {
    schema: operateSubscriptionSchema,
    examples: { enable: { isActive: true }, rotate: { rotateSecret: true } },
  },
  answers: {
    200: responseDocs(
      "The subscription. A new secret is shown only once.",
      operatedSubscriptionSchema,
      {
        enabled: { subscription: exampleSubscription },
      },
    ),
  },
  errors: [...idErrors("subscription"), {
    status: 400,
    code: "secrets_key_missing",
    when: "The server has no `SECRETS_KEY`, so it cannot store secrets.",
  }],
};
const redeliver: EndpointDoc = {
  ...byOperator,
  operationId: "redeliver",
  summary: "Redeliver an event",
  path: projectPath.extend({ deliveryId: idOf("dly", "The delivery.") }),
  answers: {
    202: responseDocs("The delivery is pending again.", redeliveredSchema, {
      pending: { delivery: { ...exampleLogEntry, status: "pending", event: null } },
    }),
  },
  errors: [...idErrors("delivery"), {
    status: 400,
    code: "delivery_pending",
    when: "The delivery is still pending: it is retried by itself.",
  }],
};

const subscriptionAddress = "/v1/admin/projects/:projectId/subscriptions/:subscriptionId";

/** The API documentation of the operator's endpoints for webhooks. They need `ADMIN_KEY`. */
export const webhookOperatorApiDoc: EndpointDocs = {
  [subscriptionAddress]: { PATCH: operateSubscription },
  [`${subscriptionAddress}/redeliver`]: { POST: redeliverAll },
  "/v1/admin/projects/:projectId/deliveries/:deliveryId/redeliver": { POST: redeliver },
  "/v1/admin/projects/:projectId/redeliveries/:jobId": { GET: getRedelivery },
  "/v1/admin/secrets/reseal": { POST: resealSecrets },
};
