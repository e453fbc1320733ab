import { z } from "zod";
import type { ZodOpenApiPathItemObject } from "zod-openapi";
import { idOf, time } from "../base/fields.ts";
import { catalogue, eventVersion } from "../events/catalogue.ts";
import { commonData, eventSchemaOf } from "../events/event.ts";
import { exampleData, subjectTypeOf } from "../events/example.ts";

const stamp = "2026-01-31T09:30:00.000Z";
const paywallId = "pw_01K9Z0C8Q4R7T2V5X8Z1B3D5F7";
const ownerUserId = "owner";

const deliverySchema = z.object({
  id: idOf("dly", "The delivery's id, the same in every attempt."),
  subscriptionId: idOf("sub", "The subscription that the delivery is for."),
  attempts: z.int().min(1).meta({ description: "The number of this attempt." }),
  createdAt: time,
  updatedAt: time.meta({ description: "When this attempt was made." }),
}).meta({ id: "Delivery", description: "What is sent, and the number of the attempt." });

const headers = z.object({
  "X-Service-Event": z.string().meta({ description: "The event's type and version: `type@1.0`." }),
  "X-Service-Signature": z.string().regex(/^[0-9a-f]{64}$/).meta({
    description: "HMAC-SHA256 of the raw body, keyed with the subscription's secret, in hex. " +
      "Compare in constant time. While a secret is being rotated, the old one signs.",
  }),
  "X-Service-Timestamp": time.meta({ description: "When it was signed. Reject old ones." }),
  "webhook-id": z.string().meta({
    description: "The delivery's id, as Standard Webhooks requires.",
  }),
  "webhook-timestamp": z.string().regex(/^\d+$/).meta({ description: "Seconds since 1970." }),
  "webhook-signature": z.string().meta({
    description:
      "`v1,` and base64 HMAC-SHA256 of `id.timestamp.body`; one for each active secret, " +
      "separated by spaces.",
  }),
});

/** Returns every event of the catalogue as an OpenAPI webhook. */
export function webhookDocs(): Record<string, ZodOpenApiPathItemObject> {
  return Object.fromEntries(
    Object.entries(catalogue).map(([type, data]) => [type, itemOf(type, data)]),
  );
}

function itemOf(type: string, data: z.ZodObject): ZodOpenApiPathItemObject {
  const event = eventSchemaOf(z.literal(type), data.extend(commonData));
  const { description = type } = data.meta() ?? {};
  const examples = {
    event: { value: { delivery: exampleDelivery, event: exampleOf(type, data) } },
  };
  return {
    post: {
      operationId: type,
      summary: description,
      tags: ["Webhooks"],
      security: [],
      requestParams: { header: headers },
      requestBody: {
        required: true,
        content: {
          "application/json": { schema: z.object({ delivery: deliverySchema, event }), examples },
        },
      },
      responses: { "2XX": { description: "Taken." }, default: { description: judged } },
    },
  };
}

const judged = "Not accepted. 400, 401, 403, 404, 410 and 422 end the delivery at once; anything " +
  "else is retried, after 30 seconds at first and then twice as long each time.";

const exampleDelivery = {
  id: "dly_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  subscriptionId: "sub_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
  attempts: 1,
  createdAt: stamp,
  updatedAt: stamp,
};

/** Builds an event from its fields' examples. */
function exampleOf(type: string, data: z.ZodObject): Record<string, unknown> {
  return {
    id: "evt_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
    paywallId,
    ownerUserId,
    type,
    version: eventVersion,
    status: "pending",
    createdAt: stamp,
    trigger: { source: "api", actorType: "paywall-owner", actorId: "key_01K9Z0C8Q4R7T2V5X8Z1B3" },
    subject: { type: subjectTypeOf(type), id: "act_01K9Z0C8Q4R7T2V5X8Z1B3D5F7", externalId: "ada" },
    data: { paywallId, ownerUserId, ...exampleData(data) },
    metadata: {},
  };
}
