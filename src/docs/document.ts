import { z } from "zod";
import { createDocument as compose, type ZodOpenApiOperationObject } from "zod-openapi";
import { errorSchema } from "../base/errors.ts";
import { requestIdCharsMax } from "../base/limits.ts";
import type {
  DocContent,
  DocTag,
  EndpointAuth,
  EndpointDoc,
  EndpointDocs,
  ErrorDoc,
  ResponseDoc,
} from "../base/endpoint_doc.ts";
import { endpointErrors, errorSchemaOf } from "./errors.ts";
import { webhookDocs } from "./webhooks.ts";

/** An OpenAPI 3.1 document. */
export type ApiDocument = ReturnType<typeof compose>;

/** Builds the API document from the schemas that the routes validate with. */
export function createDocument(
  operations: EndpointDocs,
  { baseUrl }: { baseUrl: string },
): ApiDocument {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {};
  for (const [address, methods] of Object.entries(operations)) {
    for (const [method, operation] of Object.entries(methods)) {
      const item = paths[openApiPath(address, operation)] ??= {};
      item[method.toLowerCase()] = describe(operation);
    }
  }
  return compose({
    openapi: "3.1.1",
    info: { title: "Farebox", version: "1", summary, description, license },
    servers: [{ url: baseUrl }],
    tags: docTags,
    paths,
    webhooks: webhookDocs(),
    components: { schemas: { Error: errorSchema }, securitySchemes },
  }, { allowEmptySchema: { custom: true } });
}

const summary = "A prepaid balance in front of any OpenAI-compatible app.";
const description = "Amounts are decimal strings in the project's currency, never numbers. " +
  "Every error has the same body. Every response has its request's id in `X-Request-Id`: the one " +
  "that you sent in that header, or a generated one.";
const license = { name: "MIT", identifier: "MIT" };

const securitySchemes = {
  projectKey: {
    type: "http",
    scheme: "bearer",
    description: "A project's API key (`sk_…`). Each key has one or more of the scopes `chat`, " +
      "`money` and `webhooks`.",
  },
  operatorKey: {
    type: "http",
    scheme: "bearer",
    description: "The server's `ADMIN_KEY`.",
  },
  metricsToken: {
    type: "http",
    scheme: "bearer",
    description: "The server's `METRICS_TOKEN`.",
  },
} as const;

/** Returns a route's path as OpenAPI writes it; a `*` stands for the last path parameter. */
export function openApiPath(address: string, { path }: Pick<EndpointDoc, "path">): string {
  const rest = Object.keys(path?.shape ?? {}).at(-1) ?? "";
  return address.replace(/:(\w+)/g, "{$1}").replace("*", `{${rest}}`);
}

function securityOf(access: EndpointAuth): Record<string, string[]>[] {
  if (access === "anyone") return [];
  if (access === "metrics") return [{ metricsToken: [] }];
  return [access === "operator" ? { operatorKey: [] } : { projectKey: [access] }];
}

const requestHeaders = z.object({
  "X-Request-Id": z.string().optional().meta({
    description:
      `Your own id for the request, which the response repeats: 1 to ${requestIdCharsMax} visible ` +
      "ASCII characters. Anything else is ignored.",
    param: { id: "RequestId" },
  }),
});
const responseHeaders = z.object({
  "X-Request-Id": z.string().max(requestIdCharsMax).meta({
    description: "The request's id: yours, or a generated one.",
    header: { id: "RequestId" },
  }),
});

function describe(operation: EndpointDoc): ZodOpenApiOperationObject {
  const { operationId, summary, description, tag, access, path, query, headers } = operation;
  return {
    operationId,
    summary,
    tags: [tag],
    ...(description ? { description } : {}),
    security: securityOf(access),
    requestParams: {
      ...(path ? { path } : {}),
      ...(query ? { query } : {}),
      header: requestHeaders.extend(headers?.shape ?? {}),
    },
    ...(operation.body ? { requestBody: describeBody(operation.body) } : {}),
    responses: {
      ...Object.fromEntries(
        Object.entries(operation.answers).map((
          [status, answer],
        ) => [status, describeResponse(answer)]),
      ),
      ...describeErrors(endpointErrors(operation), operation.errorSchema),
    },
  };
}

function describeBody(body: NonNullable<EndpointDoc["body"]>) {
  return { required: !body.optional, content: { [body.type ?? "application/json"]: media(body) } };
}

function describeResponse({ description, content, headers }: ResponseDoc) {
  const bodies = Object.entries(content).map(([type, body]) => [type, media(body)] as const);
  return {
    description,
    headers: responseHeaders.extend(headers?.shape ?? {}),
    ...(bodies.length > 0 ? { content: Object.fromEntries(bodies) } : {}),
  };
}

function media({ schema, examples }: DocContent) {
  const named = Object.entries(examples).map(([name, value]) => [name, { value }] as const);
  return { schema, ...(named.length > 0 ? { examples: Object.fromEntries(named) } : {}) };
}

function describeErrors(cases: readonly ErrorDoc[], schema?: z.ZodType) {
  const byStatus = Map.groupBy(cases, ({ status }) => status);
  const responses = [...byStatus].sort(([one], [other]) => one - other).map(([status, list]) => {
    const reasons = list.map(({ code, when }) =>
      typeof code === "string" ? `- \`${code}\`: ${when}` : `- ${when}`
    );
    const description = [...new Set(reasons)].join("\n");
    const content = { "application/json": { schema: schema ?? errorSchemaOf(list) } };
    const own = list.flatMap(({ headers }) => Object.entries(headers?.shape ?? {}));
    const headers = responseHeaders.extend(Object.fromEntries(own));
    return [String(status), { description, headers, content }] as const;
  });
  return Object.fromEntries(responses);
}

const about: Record<DocTag, string> = {
  Chat: "What OpenAI clients call: metered, and paid from the user's balance. Chats, responses, " +
    "messages and legacy completions are served over upstreams of chat completions, responses or " +
    "messages: in another format than their own they are translated, and 400 names the field that " +
    "has no equivalent there.",
  Money: "A user's balance: deposits, charges, refunds, and their history.",
  Authorization:
    "In the shared mode: whether a user authorizes the project to charge their wallet.",
  Webhooks: "Subscriptions to events, and the log of their deliveries.",
  Projects: "For the operator: projects, their prices and their keys.",
  Users: "For the operator: a project's users and their money.",
  Operations: "For the operator: deliveries, secrets, backups and verification.",
  Health: "For monitoring of the process.",
};

/** The tags of the document, in their order. */
const docTags = Object.entries(about).map(([name, description]) => ({ name, description }));
