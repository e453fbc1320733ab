import { z } from "zod";
import {
  anyCode,
  type EndpointDoc,
  type EndpointDocs,
  type ErrorDoc,
  responseDocs,
} from "../../base/endpoint_doc.ts";
import { userErrors, userHeader, userQuery } from "../../projects/end_user.ts";
import { userPath } from "../api_doc.ts";

const tag = { tag: "Chat", access: "chat" } as const;
const id = "resp_68a1f0c2e4b0819f";
const idPath = z.object({
  responseId: z.string().meta({ description: "The response's id.", example: id }),
});
const passedOn = z.looseObject({}).meta({ id: "KeptResponse", description: "The upstream's own." });

const errors: readonly ErrorDoc[] = [
  ...userErrors,
  { status: 404, code: "not_found", when: "The user has no such response." },
  { status: 400, code: anyCode, when: "The upstream refuses; its own message and code." },
  { status: 404, code: anyCode, when: "The upstream no longer has it." },
  { status: 429, code: "rate_limit_exceeded", when: "A rate limit of the key is reached." },
  { status: 429, code: "concurrency_limit", when: "Too many requests are running." },
  { status: 429, code: anyCode, when: "The upstream's own limit." },
  { status: 502, code: "upstream_error", when: "The upstream failed, or could not be reached." },
  {
    status: 502,
    code: "upstream_unavailable",
    when: "The upstream refuses the operator's key or account, or none is configured.",
  },
  { status: 502, code: "response_too_large", when: "The upstream's answer is too large." },
  { status: 504, code: "upstream_timeout", when: "The upstream did not respond in time." },
];

const listQuery = z.object({
  limit: z.string().optional().meta({ description: "The most items of a page.", example: "20" }),
  order: z.string().optional().meta({ description: "`asc` or `desc`.", example: "asc" }),
  after: z.string().min(1).optional().meta({
    description: "An item's id: the page begins after it.",
  }),
});

function operation(doc: Pick<EndpointDoc, "operationId" | "summary"> & { query?: z.ZodObject }) {
  const query = userQuery.extend(doc.query?.shape ?? {});
  const answers = {
    200: responseDocs("As the upstream says.", passedOn, { kept: { id, object: "response" } }),
  };
  return { ...tag, ...doc, path: idPath, headers: userHeader, query, answers, errors };
}

const operations = {
  "": {
    GET: operation({ operationId: "getResponse", summary: "Retrieve a response" }),
    DELETE: operation({ operationId: "deleteResponse", summary: "Delete a response" }),
  },
  "/cancel": {
    POST: operation({ operationId: "cancelResponse", summary: "Cancel a response" }),
  },
  "/input_items": {
    GET: operation({
      operationId: "listInputItems",
      summary: "List input items of a response",
      query: listQuery,
    }),
  },
} satisfies Record<string, Partial<Record<"GET" | "POST" | "DELETE", EndpointDoc>>>;

/** Operations on responses that the upstream keeps, free of charge. */
export const keptApiDoc: EndpointDocs = Object.fromEntries(
  Object.entries(operations).flatMap(([suffix, methods]) => [
    [`/v1/responses/:responseId${suffix}`, methods],
    [`/v1/:user/responses/:responseId${suffix}`, ofUser(methods)],
  ]),
);

function ofUser(methods: EndpointDocs[string]): EndpointDocs[string] {
  return Object.fromEntries(
    Object.entries(methods).map(([method, doc]) => [method, {
      ...doc,
      operationId: `${doc.operationId}OfUser`,
      variantOf: doc.operationId,
      summary: `${doc.summary}, with the user in the path`,
      path: userPath.extend(idPath.shape),
      query: doc.query?.omit({ user: true }),
    }]),
  );
}
