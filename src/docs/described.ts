import type { EndpointDoc, EndpointDocs } from "../base/endpoint_doc.ts";
import { isObject, type Json, type JsonObject } from "../base/json.ts";
import { openApiPath } from "./document.ts";

/** An endpoint, and its description in the API document. */
export interface DescribedEndpoint {
  operation: EndpointDoc;
  method: string;
  path: string;
  baseUrl: string;
  /** As in the document, with references resolved. */
  described: JsonObject;
  parameters: readonly JsonObject[];
  /** The schema of its body. */
  body: JsonObject | null;
}

/** Joins the operations with their descriptions in the document, as it is served. */
export function describedOperations(
  operations: EndpointDocs,
  served: JsonObject,
): DescribedEndpoint[] {
  const [server] = Array.isArray(served.servers) ? served.servers : [];
  const baseUrl = String(objectIn(server).url ?? "");
  const paths = objectIn(served.paths);
  return Object.entries(operations).flatMap(([address, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const path = openApiPath(address, operation);
      const found = objectIn(objectIn(paths[path])[method.toLowerCase()]);
      const parameters = Array.isArray(found.parameters) ? found.parameters : [];
      const type = operation.body?.type ?? "application/json";
      const body = objectIn(objectIn(objectIn(found.requestBody).content)[type]);
      return {
        operation,
        method,
        path,
        baseUrl,
        described: { ...found, responses: withHeaders(found.responses, served) },
        // Parameters that every request may have are described once, on the first page.
        parameters: parameters.map((one) => inPlace(one, served))
          .filter(({ name }) => name !== "X-Request-Id"),
        body: body.schema === undefined ? null : inPlace(body.schema, served),
      };
    })
  );
}

/** Returns the responses with references to headers resolved. */
function withHeaders(responses: Json | undefined, served: JsonObject): JsonObject {
  return Object.fromEntries(
    entriesIn(responses).map(([status, answer]) => {
      const headers = entriesIn(answer.headers).map(([name, one]) => [name, inPlace(one, served)]);
      const own = headers.filter(([name]) => name !== "X-Request-Id");
      return [status, { ...answer, headers: Object.fromEntries(own) }];
    }),
  );
}

function inPlace(part: Json, served: JsonObject): JsonObject {
  const { $ref } = objectIn(part);
  if (typeof $ref !== "string") return objectIn(part);
  return $ref.slice(2).split("/").reduce<JsonObject>((at, name) => objectIn(at[name]), served);
}

/** Returns an object as it is, and an empty one for anything else. */
export function objectIn(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** Returns the members of an object that are objects themselves. */
export function entriesIn(value: Json | undefined): [string, JsonObject][] {
  return Object.entries(objectIn(value)).map(([name, one]) => [name, objectIn(one)]);
}
