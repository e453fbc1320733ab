import { z } from "zod";
import { type EndpointDoc, type EndpointDocs } from "../base/endpoint_doc.ts";
import { idOf } from "../base/fields.ts";
import { requestQuerySchema, requestsSchema } from "./schema.ts";

const example = {
  requests: [{
    id: "req_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
    requestId: "req_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
    createdAt: "2026-01-31T09:30:00.000Z",
    outcome: "completed",
    status: 200,
    reason: null,
    endpoint: "chat",
    stream: true,
    user: "ada",
    model: "gpt-4o-mini",
    key: "key_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
    latencyMs: 1840,
    firstTokenMs: 412,
    inputTokens: 908,
    cachedTokens: 0,
    outputTokens: 226,
    cost: "0.0003588",
    upstreamCost: "0.000299",
    upstream: null,
    attempts: 1,
    activityId: "act_01K9Z0C8Q4R7T2V5X8Z1B3D5F7",
    count: 1,
  }],
  nextCursor: null,
  searchedTo: null,
};

const listRequests: EndpointDoc = {
  tag: "Operations",
  access: "operator",
  operationId: "listRequests",
  summary: "List requests",
  description: "Every request of a model, newest first, also those that failed or were refused. " +
    "Requests are kept for the project's `requestLogDays`, without their texts. With " +
    "`Accept: text/csv` the page is CSV, with the cursor in the `X-Next-Cursor` header.",
  path: z.object({ projectId: idOf("pw", "The project.") }),
  query: requestQuerySchema,
  answers: {
    200: {
      description: "A page of requests.",
      content: {
        "application/json": { schema: requestsSchema, examples: { page: example } },
        "text/csv": {
          schema: z.string(),
          examples: { page: "id,requestId,createdAt,outcome,status,reason,endpoint,…\r\n" },
        },
      },
      headers: z.object({
        "X-Next-Cursor": z.string().optional().meta({
          description: "CSV only: where the next page starts; absent on the last page.",
        }),
      }),
    },
  },
  errors: [
    { status: 400, code: "unknown_parameter", when: "The query has a filter that is unknown." },
    { status: 400, code: "invalid_value", when: "A filter is not valid." },
    { status: 404, code: "not_found", when: "The project does not exist." },
  ],
};

/** The API documentation of the log of requests. */
export const requestApiDoc: EndpointDocs = {
  "/v1/admin/projects/:projectId/requests": { GET: listRequests },
};
